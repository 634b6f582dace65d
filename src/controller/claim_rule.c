/* claim_rule.c - coordination.k8s.io/v1, Lease. */
/* SPDX-License-Identifier: MIT */
#include "controller/claim_rule.h"

#include "controller/pod_read.h"
#include "controller/pod_write.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* RELEASED_S: a record without a holder must have a duration all the same. */
enum { RELEASED_S = 1, DURATION_MOST_S = 3600 };

static int64_t
read_int(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	if (object == NULL || !json_object_object_get_ex(object, name, &value) ||
		!json_object_is_type(value, json_type_int))
		return 0;
	return json_object_get_int64(value);
}

void
claim_rule_see(struct claim_sight *sight, struct json_object *lease, int64_t now_ms)
{
	struct json_object *spec = pod_read_object(lease, "spec");
	struct claim_sight now = { .there = lease != NULL, .since_ms = now_ms, .looked_ms = now_ms };
	int64_t seconds = read_int(spec, "leaseDurationSeconds");

	pod_read_copy(spec, "holderIdentity", now.holder, sizeof now.holder);
	pod_read_copy(spec, "renewTime", now.renewed, sizeof now.renewed);
	now.transitions = read_int(spec, "leaseTransitions");
	now.duration_ms = seconds <= 0 ? CLAIM_DURATION_MS
				       : (seconds < DURATION_MOST_S ? seconds : DURATION_MOST_S) * 1000;
	if (now_ms - sight->looked_ms <= CLAIM_BLIND_MS && sight->there == now.there &&
		sight->transitions == now.transitions && sight->duration_ms == now.duration_ms &&
		strcmp(sight->holder, now.holder) == 0 && strcmp(sight->renewed, now.renewed) == 0)
		now.since_ms = sight->since_ms;
	*sight = now;
}

enum claim_owner
claim_rule_owner(const struct claim_sight *sight, const char *self, int64_t now_ms)
{
	if (!sight->there || sight->holder[0] == '\0')
		return CLAIM_FREE;
	if (strcmp(sight->holder, self) == 0)
		return CLAIM_OURS;
	return now_ms - sight->since_ms < sight->duration_ms ? CLAIM_THEIRS : CLAIM_FREE;
}

/* As MicroTime has it. */
static void
time_text(int64_t wall_us, char ret_text[CLAIM_TIME_SIZE])
{
	time_t seconds = (time_t)(wall_us / 1000000);
	struct tm tm;
	size_t len;

	(void)gmtime_r(&seconds, &tm);
	len = strftime(ret_text, CLAIM_TIME_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(ret_text + len, CLAIM_TIME_SIZE - len, ".%06dZ", (int)(wall_us % 1000000));
}

struct json_object *
claim_rule_make(struct json_object *standing, const char *space, const char *self, int64_t wall_us)
{
	struct json_object *lease = standing != NULL ? pod_write_copy(standing) : pod_write_object();
	struct json_object *spec = pod_read_object(lease, "spec"), *metadata = pod_read_object(lease, "metadata");
	bool other = strcmp(pod_read_text(spec, "holderIdentity"), self) != 0;
	char now[CLAIM_TIME_SIZE];

	if (metadata == NULL)
		metadata = pod_write_in(lease, "metadata", pod_write_object());
	if (spec == NULL)
		spec = pod_write_in(lease, "spec", pod_write_object());
	time_text(wall_us, now);
	pod_write_text(pod_write_text(lease, "apiVersion", "coordination.k8s.io/v1"), "kind", "Lease");
	pod_write_text(pod_write_text(metadata, "name", CLAIM_LEASE), "namespace", space);
	pod_write_text(spec, "holderIdentity", self);
	pod_write_int(spec, "leaseDurationSeconds", self[0] != '\0' ? CLAIM_DURATION_MS / 1000 : RELEASED_S);
	pod_write_text(spec, "renewTime", now);
	if (other && self[0] != '\0') {
		pod_write_text(spec, "acquireTime", now);
		pod_write_int(
			spec, "leaseTransitions", standing != NULL ? read_int(spec, "leaseTransitions") + 1 : 0);
	}
	return lease;
}
