/* check_metrics.c - what the server counts that should be zero, and how full its tables are. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "orchardctl/doctor/finding.h"
#include "orchardctl/doctor/metrics.h"
#include "orchardctl/output/cell.h"

#include <stdio.h>

enum { LATELY_SECONDS = 600 };

/* Each orchard_sandbox_weakened{setting="..."} that is above 0. */
static void
check_isolation(struct findings *findings, const char *text)
{
	static const char before[] = "orchard_sandbox_weakened{setting=\"";
	unsigned weakened = 0;

	for (const char *at = text; (at = strstr(at, before)) != NULL; at++) {
		const char *name = at + sizeof before - 1, *end = strchr(name, '"');
		AUTO_FREE char *cure = NULL;

		if (end == NULL || strncmp(end, "\"} ", 3) != 0 || strtod(end + 3, NULL) <= 0)
			continue;
		weakened++;
		cure = alloc_format("remove %.*s from orchard.conf if that was not meant, and restart orchardd",
			(int)(end - name), name);
		finding_add(findings, FINDING_WARN, "isolation", cure,
			"sandboxes are less isolated than by default: %.*s", (int)(end - name), name);
	}
	if (weakened == 0)
		finding_add(findings, FINDING_OK, "isolation", NULL, "as by default, or stronger");
}

/* How many of a role were replaced, in words; malloc'ed, NULL: none. */
static char *
restarts_text(const char *text, const char *role, bool *ret_lately)
{
	AUTO_FREE char *count_name = alloc_format("orchard_process_restarts{role=\"%s\"}", role);
	AUTO_FREE char *age_name = alloc_format("orchard_process_restart_age_seconds{role=\"%s\"}", role);
	AUTO_FREE char *ago = NULL;
	double count, age;

	if (!metrics_value(text, count_name, &count) || count <= 0)
		return NULL;
	*ret_lately = !metrics_value(text, age_name, &age) || age < LATELY_SECONDS;
	ago = cell_duration(age);
	return count < 2 ? alloc_format("%s, %s ago", role, ago)
			 : alloc_format("%s, %.0f times, the last %s ago", role, count, ago);
}

static void
check_restarts(struct findings *findings, const char *text)
{
	static const char *const roles[] = { "worker", "gateway", "reaper", "spawner", "controller" };
	unsigned restarted = 0;

	for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
		bool lately = false;
		AUTO_FREE char *replaced = restarts_text(text, roles[i], &lately);

		if (replaced == NULL)
			continue;
		restarted++;
		finding_add(findings, lately ? FINDING_WARN : FINDING_OK, "processes",
			lately ? "the server's log tells why: journalctl -u orchardd | grep -E '\"(warn|error)\"'"
			       : NULL,
			lately ? "died and was replaced: %s" : "all is well since one was replaced: %s", replaced);
	}
	if (restarted == 0)
		finding_add(findings, FINDING_OK, "processes", NULL, "none had to be replaced");
}

/* Tables that refuse when they are full. */
static void
check_room(struct findings *findings, const char *text)
{
	static const struct {
		const char *used, *most, *setting;
	} tables[] = {
		{ "orchard_execs_queued", "orchard_execs_queue_capacity", "exec_queue_limit" },
		{ "orchard_sandboxes", "orchard_sandboxes_capacity", "max_sandboxes" },
	};
	double used, most;

	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		AUTO_FREE char *cure = NULL;

		if (!metrics_value(text, tables[i].used, &used) || !metrics_value(text, tables[i].most, &most) ||
			most <= 0 || used < 0.9 * most)
			continue;
		cure = alloc_format("raise %s, or ask for less", tables[i].setting);
		finding_add(findings, FINDING_WARN, "room", cure, "%s: %.0f of %.0f", tables[i].used, used, most);
	}
}

/* A server without Redis counts 0 as well; whether one that wants it has it is in /ready. */
static void
check_redis(struct findings *findings, const char *text)
{
	double up, connects;

	if (!metrics_value(text, "orchard_redis_up", &up) ||
		!metrics_value(text, "orchard_redis_connects_total", &connects))
		return;
	if (up > 0)
		finding_add(findings, FINDING_OK, "redis", NULL, "it serves %.0f processes of the server", up);
	else if (connects > 0)
		finding_add(findings, FINDING_FAIL, "redis",
			"redis-cli -u URL ping, with redis_url of orchard.conf, on the server's host",
			"the server had it, and does not reach it any more");
}

void
doctor_check_metrics(struct findings *findings)
{
	const char *text = findings->metrics;

	if (text == NULL)
		return;
	check_isolation(findings, text);
	check_restarts(findings, text);
	check_room(findings, text);
	check_redis(findings, text);
	if (findings_on_cluster(findings))
		doctor_check_cluster(findings);
}
