/*
 * pod_status.h - what the JSON of a pod means for the sandbox that it is.
 *
 * Pure: JSON in, facts and words out. Any JSON is taken; what is missing or of the wrong type is as if it were not there.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_STATUS_H
#define ORCHARD_CONTROLLER_POD_STATUS_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct json_object;

enum pod_phase {
	POD_WAITING, /* for a node, an image, its containers */
	POD_UNSCHEDULABLE, /* no node takes it now; may still end well */
	POD_STARTING, /* it has an address, and nothing is left to do but to start its container: the agent may answer already */
	POD_RUNNING, /* its container runs and it has an address: the agent can be asked */
	POD_LOST, /* it ran, and its node does not answer: may come back */
	POD_FAILED, /* it will never run (again) */
	POD_GOING, /* it is being deleted */
};

/* Why it waits longer than it should, if it does. */
enum pod_trouble {
	POD_TROUBLE_NONE,
	POD_TROUBLE_IMAGE, /* an image cannot be fetched; the cluster goes on trying */
	POD_TROUBLE_START, /* a container cannot be made or started; the cluster goes on trying */
};

struct pod_status {
	char id[64], uid[ID_UUID_SIZE]; /* of the sandbox, from the labels; id "": not a pod of ours */
	char name[256], pod_uid[64]; /* of the pod */
	enum pod_phase phase;
	enum pod_trouble trouble;
	int64_t trouble_since_ms; /* in the caller's clock; 0: no trouble */
	int64_t created_ms; /* of the wall clock, as the API server saw it; 0: not known */
	char ip[64]; /* "" : none */
	char node[256];
	char container[128]; /* the runtime's name of the one that was first seen to run; "": none was */
	char reason
		[64]; /* one word of the cluster's: "Unschedulable", "ErrImagePull", "OOMKilled", "Evicted"...; or "" */
	char words[480]; /* a sentence for people; "" when all is well */
	bool oom_killed, evicted, node_lost;
	int exit_code; /* of the agent's container when that has ended; -1 */
};

/*
 * before: what the same pod was when it was seen last, or NULL: trouble that goes on keeps its beginning, since the
 * cluster alternates between trying and pausing, and a container in the place of one that ran means failure. now_ms is any
 * steady clock, greater than 0.
 */
void pod_status_read(
	struct json_object *pod, const struct pod_status *before, int64_t now_ms, struct pod_status *ret_status);

/* "waiting", "unschedulable", ... */
const char *pod_phase_name(enum pod_phase phase);

#endif
