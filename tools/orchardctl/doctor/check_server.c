/* check_server.c - what the server says of itself: does it answer, does it know our key, is it ready. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/alloc.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/command.h"
#include "orchardctl/doctor/finding.h"
#include "orchardctl/output/cell.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

#define LEAST_MEMORY (256.0 * 1024 * 1024)

static bool
check_answer(struct findings *findings)
{
	const struct ctl *ctl = findings->ctl;
	struct err err;
	AUTO_JSON struct json_object *root = client_get(ctl->client, "/", &err);
	const char *version;

	if (root == NULL) {
		finding_add(findings, FINDING_FAIL, "server",
			err.code == ERR_NOT_FOUND
				? "--server URL or SANDBOX_BASE_URL without a path; SANDBOX_PREFIX is for a proxy "
				  "that adds one"
				: "on its host: systemctl status orchardd, or scripts/quickstart; another server: "
				  "--server URL",
			"%s", err.msg);
		return false;
	}
	if (strcmp(print_string(root, "service"), "orchard") != 0) {
		finding_add(findings, FINDING_FAIL, "server", "--server URL, or 'orchardctl config set-context'",
			"%s answers, but is no Orchard server", ctl->server.url);
		return false;
	}
	version = print_string(root, "version");
	finding_add(findings, FINDING_OK, "server", NULL, "%s answers", ctl->server.url);
	if (strcmp(version, PACKAGE_VERSION) == 0)
		finding_add(findings, FINDING_OK, "version", NULL, "%s, here and there", version);
	else
		finding_add(findings, FINDING_WARN, "version", "install the same version on both sides",
			"the server is %s, orchardctl " PACKAGE_VERSION, version);
	return true;
}

static bool
check_key(struct findings *findings)
{
	const struct request request = { .path = "/sandboxes?limit=1" };
	AUTO_ANSWER answer = { 0 };
	struct err err;

	if (client_call(findings->ctl->client, &request, &answer, &err) == 0) {
		finding_add(findings, FINDING_OK, "key", NULL,
			findings->ctl->server.key != NULL ? "the server knows our key"
							  : "the server asks for none");
		return true;
	}
	finding_add(findings, FINDING_FAIL, "key",
		answer.status == 401 || answer.status == 403
			? "--api-key KEY, SANDBOX_API_KEY, or 'orchardctl config set-context NAME --server URL "
			  "--api-key-file FILE'"
			: "the server's log tells more under that request id",
		"%s", err.msg);
	return false;
}

/* The text stays with the findings: what it holds says also which driver there is. */
static void
take_metrics(struct findings *findings)
{
	const struct request request = { .path = "/metrics" };
	AUTO_ANSWER answer = { 0 };
	struct err err = { 0 };

	if (client_call(findings->ctl->client, &request, &answer, &err) == 0 && answer.body != NULL)
		findings->metrics = alloc_string(answer.body);
	else
		finding_add(findings, FINDING_WARN, "metrics", NULL, "%s",
			err.msg[0] != '\0' ? err.msg : "the answer is empty");
}

/* What mends a problem of a server whose sandboxes are on its host. */
static const char *
host_cure(const char *problem)
{
	static const struct {
		const char *said, *cure;
	} cures[] = {
		{ "Redis", "orchardctl doctor --host, on the server's host, looks at its Redis" },
		{ "no cgroup controller",
			"systemctl edit orchardd: Delegate=yes; or cgroup_parent = \"/\" in orchard.conf" },
		{ "no cgroup can be made", "mount -o remount,rw /sys/fs/cgroup" },
		{ "namespaces", "sysctl -w user.max_user_namespaces=100000; the server must be root" },
		{ "/proc",
			"in a container: run it with an unmasked /proc (--security-opt systempaths=unconfined)" },
		{ "No space left", "df -h STATE_DIR: make room there" },
	};

	for (size_t i = 0; i < sizeof cures / sizeof *cures; i++)
		if (strstr(problem, cures[i].said) != NULL)
			return cures[i].cure;
	return "orchardd -t, on the server's host; docs/local-driver.md, \"What the host must have\"";
}

static void
add_problem(struct findings *findings, const char *problem)
{
	AUTO_FREE char *cure = findings_on_cluster(findings) ? doctor_cluster_cure(findings, problem)
							     : alloc_string(host_cure(problem));

	finding_add(findings, FINDING_FAIL, "ready", cure, "%s", problem);
}

static void
check_ready(struct findings *findings)
{
	const struct request request = { .path = "/ready", .no_retry = true };
	AUTO_ANSWER answer = { 0 };
	struct json_object *problems;
	struct err err;

	if (client_call(findings->ctl->client, &request, &answer, &err) == 0) {
		finding_add(findings, FINDING_OK, "ready", NULL, "sandboxes can be made and results kept");
		return;
	}
	problems = answer.json != NULL ? print_member(answer.json, "problems") : NULL;
	if (problems == NULL || !json_object_is_type(problems, json_type_array)) {
		finding_add(findings, FINDING_FAIL, "ready",
			"the server's log has the reason: journalctl -u orchardd", "%s", err.msg);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(problems); i++)
		add_problem(findings, json_object_get_string(json_object_array_get_idx(problems, i)));
}

static void
add_host_share(struct findings *findings, struct json_object *resources)
{
	double asked_bytes = json_object_get_double(print_member(resources, "total_requested.memory_bytes"));
	double host_bytes = json_object_get_double(print_member(resources, "total_capacity.memory_bytes"));
	AUTO_FREE char *asked = cell_bytes(asked_bytes);
	AUTO_FREE char *host = cell_bytes(host_bytes);

	finding_add(findings, FINDING_OK, "driver", NULL,
		"local answers; sandboxes may use %g cpu and %s of memory, the host has %g and %s",
		json_object_get_double(print_member(resources, "total_requested.cpu")), asked,
		json_object_get_double(print_member(resources, "total_capacity.cpu")), host);
}

static void
check_resources(struct findings *findings)
{
	struct err err;
	AUTO_JSON struct json_object *resources = client_get(findings->ctl->client, "/resources", &err);
	AUTO_FREE char *memory = NULL;
	AUTO_FREE char *cure = NULL;
	double cpu, bytes;

	if (resources == NULL) {
		cure = findings_on_cluster(findings) ? doctor_cluster_cure(findings, err.msg)
						     : alloc_string("the server's log has its reason");
		finding_add(findings, FINDING_FAIL, "driver", cure, "%s", err.msg);
		return;
	}
	if (findings_on_cluster(findings))
		doctor_check_nodes(findings, resources);
	cpu = json_object_get_double(print_member(resources, "available.cpu"));
	bytes = json_object_get_double(print_member(resources, "available.memory_bytes"));
	memory = cell_bytes(bytes > 0 ? bytes : 0);
	/* A cluster starts no pod whose requests find no place. On one host they are limits: sandboxes share it. */
	if (!findings_on_cluster(findings))
		add_host_share(findings, resources);
	else if (bytes < LEAST_MEMORY || cpu <= 0)
		finding_add(findings, FINDING_WARN, "driver", "orchardctl ls; orchardctl rm SANDBOX...",
			"kubernetes answers, and has little room: %.3g cpu and %s of memory are not asked for", cpu,
			memory);
	else
		finding_add(findings, FINDING_OK, "driver", NULL,
			"kubernetes answers; %.3g cpu and %s of memory are not asked for", cpu, memory);
}

bool
doctor_check_server(struct findings *findings)
{
	bool known;

	if (!check_answer(findings))
		return false;
	known = check_key(findings);
	if (known)
		take_metrics(findings);
	check_ready(findings);
	if (!known)
		return false;
	check_resources(findings);
	return true;
}
