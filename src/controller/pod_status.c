/*
 * pod_status.c - from conditions and container states to one phase.
 *
 * The order of the questions matters: a pod that is being deleted is going, whatever else it is, and one that has ended
 * does not run, whatever its conditions still say.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_status.h"

#include "base/text.h"
#include "controller/pod_read.h"
#include "controller/pod_spec.h"

#include <json-c/json.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Reasons of a waiting container that mean more than "not yet". */
static const struct {
	const char *reason;
	enum pod_trouble trouble;
	bool final; /* trying again cannot help */
} pod_reasons[] = {
	{ "ErrImagePull", POD_TROUBLE_IMAGE, false },
	{ "ImagePullBackOff", POD_TROUBLE_IMAGE, false },
	{ "ErrImageNeverPull", POD_TROUBLE_IMAGE, false },
	{ "ImageInspectError", POD_TROUBLE_IMAGE, false },
	{ "RegistryUnavailable", POD_TROUBLE_IMAGE, false },
	{ "SignatureValidationFailed", POD_TROUBLE_IMAGE, false },
	{ "InvalidImageName", POD_TROUBLE_IMAGE, true },
	{ "CreateContainerConfigError", POD_TROUBLE_START, false },
	{ "CreateContainerError", POD_TROUBLE_START, false },
	{ "CreatePodSandboxError", POD_TROUBLE_START, false },
	{ "RunContainerError", POD_TROUBLE_START, false },
	{ "PostStartHookError", POD_TROUBLE_START, false },
	{ "CrashLoopBackOff", POD_TROUBLE_START, false },
};

/* Reasons of a disruption, beside those that a pod has itself. */
static const struct {
	const char *reason;
	bool evicted, node_lost;
	const char *words;
} pod_disruptions[] = {
	{ "Evicted", true, false, "the pod was evicted" },
	{ "EvictionByEvictionAPI", true, false, "the pod was evicted" },
	{ "TerminationByKubelet", true, false, "the pod was evicted by its node" },
	{ "Preempting", true, false, "the pod had to make room for one of higher priority" },
	{ "PreemptionByScheduler", true, false, "the pod had to make room for one of higher priority" },
	{ "NodeShutdown", true, true, "the pod's node was shut down" },
	{ "Terminated", true, true, "the pod's node was shut down" },
	{ "Shutdown", true, true, "the pod's node was shut down" },
	{ "NodeLost", false, true, "the pod's node was lost" },
	{ "DeletionByTaintManager", false, true, "the pod's node was lost or took no pods any more" },
	{ "DeletionByPodGC", false, true, "the pod's node is gone" },
};

static void pod_say(struct pod_status *status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void
pod_say(struct pod_status *status, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(status->words, sizeof status->words, fmt, args);
	va_end(args);
	text_utf8_mend(status->words);
	for (size_t len = strlen(status->words); len > 0 && status->words[len - 1] == ' '; len--)
		status->words[len - 1] = '\0'; /* some of kubelet's sentences end so */
}

/* ": text", or nothing. */
static const char *
pod_colon(const char *text)
{
	return text[0] == '\0' ? "" : ": ";
}

static void
pod_read_identity(struct json_object *pod, struct pod_status *status)
{
	struct json_object *metadata = pod_read_object(pod, "metadata");
	struct json_object *labels = pod_read_object(metadata, "labels");
	const char *id = pod_read_text(labels, POD_SPEC_LABEL_ID), *uid = pod_read_text(labels, POD_SPEC_LABEL_UID);

	pod_read_copy(metadata, "name", status->name, sizeof status->name);
	pod_read_copy(metadata, "uid", status->pod_uid, sizeof status->pod_uid);
	status->created_ms = pod_read_time(metadata, "creationTimestamp");
	if (strcmp(pod_read_text(labels, POD_SPEC_LABEL_APP), POD_SPEC_APP) != 0 || !id_is_sandbox_id(id) ||
		!id_is_uuid(uid))
		return;
	pod_read_copy(labels, POD_SPEC_LABEL_ID, status->id, sizeof status->id);
	pod_read_copy(labels, POD_SPEC_LABEL_UID, status->uid, sizeof status->uid);
}

/* True when reason is one of those; the rest of the sentence is the cluster's text. */
static bool
pod_disrupted(struct pod_status *status, const char *reason, const char *text)
{
	for (size_t i = 0; i < sizeof pod_disruptions / sizeof pod_disruptions[0]; i++) {
		if (strcmp(pod_disruptions[i].reason, reason) != 0)
			continue;
		status->evicted = pod_disruptions[i].evicted;
		status->node_lost = pod_disruptions[i].node_lost;
		snprintf(status->reason, sizeof status->reason, "%s", reason);
		pod_say(status, "%s%s%s", pod_disruptions[i].words, pod_colon(text), text);
		return true;
	}
	return false;
}

static struct json_object *
pod_condition(struct json_object *pod_status, const char *type)
{
	return pod_read_find(pod_read_array(pod_status, "conditions"), "type", type);
}

static bool
pod_condition_is(struct json_object *condition, const char *value)
{
	return strcmp(pod_read_text(condition, "status"), value) == 0;
}

static bool
pod_read_disruption(struct json_object *pod_status, struct pod_status *status)
{
	struct json_object *condition = pod_condition(pod_status, "DisruptionTarget");

	if (pod_disrupted(status, pod_read_text(pod_status, "reason"), pod_read_text(pod_status, "message")))
		return true;
	return pod_condition_is(condition, "True") &&
		pod_disrupted(status, pod_read_text(condition, "reason"), pod_read_text(condition, "message"));
}

/* Its node, or the runtime there, was away when it ended; the exit code is made up. */
static bool
pod_end_is_unknown(const char *reason)
{
	return strcmp(reason, "ContainerStatusUnknown") == 0 || strcmp(reason, "Unknown") == 0;
}

/* What ended, in words; name says which container. */
static void
pod_read_end(struct json_object *ended, const char *name, struct pod_status *status)
{
	struct json_object *code = NULL;
	const char *text = pod_read_text(ended, "message"), *reason = pod_read_text(ended, "reason");

	pod_read_copy(ended, "reason", status->reason, sizeof status->reason);
	if (json_object_object_get_ex(ended, "exitCode", &code))
		status->exit_code = json_object_get_int(code);
	status->oom_killed = strcmp(reason, "OOMKilled") == 0;
	if (status->oom_killed)
		pod_say(status, "%s was killed because the pod had used all of its memory (OOMKilled)", name);
	else if (strcmp(reason, "StartError") == 0 || strcmp(reason, "ContainerCannotRun") == 0)
		pod_say(status, "%s could not be started (%s)%s%s", name, reason, pod_colon(text), text);
	else if (pod_end_is_unknown(reason))
		pod_say(status, "%s has ended, and its node does not know how (%s)%s%s", name, reason,
			pod_colon(text), text);
	else if (status->exit_code > 128 && status->exit_code < 128 + 65)
		pod_say(status, "%s was killed by signal %d%s%s", name, status->exit_code - 128, pod_colon(text),
			text);
	else
		pod_say(status, "%s ended with exit code %d%s%s", name, status->exit_code, pod_colon(text), text);
}

/* An init container that goes on beside the others, and is started again when it has ended. */
static bool
pod_goes_beside(struct json_object *pod, struct json_object *item)
{
	struct json_object *init = pod_read_find(pod_read_array(pod_read_object(pod, "spec"), "initContainers"),
		"name", pod_read_text(item, "name"));

	return strcmp(pod_read_text(init, "restartPolicy"), "Always") == 0;
}

static struct json_object *
pod_agent(struct json_object *pod_status)
{
	return pod_read_find(pod_read_array(pod_status, "containerStatuses"), "name", POD_SPEC_CONTAINER);
}

static struct json_object *
pod_agent_state(struct json_object *pod_status)
{
	return pod_read_object(pod_agent(pod_status), "state");
}

/* The first container that ended badly; init containers come first, as they do in the pod. False: none did. */
static bool
pod_read_ends(struct json_object *pod, struct pod_status *status)
{
	struct json_object *pod_status = pod_read_object(pod, "status");
	struct json_object *init = pod_read_array(pod_status, "initContainerStatuses"), *ended;
	char name[300];

	for (size_t i = 0; init != NULL && i < json_object_array_length(init); i++) {
		struct json_object *item = json_object_array_get_idx(init, i), *code = NULL;

		ended = pod_read_object(pod_read_object(item, "state"), "terminated");
		if (ended == NULL || !json_object_object_get_ex(ended, "exitCode", &code) ||
			json_object_get_int(code) == 0 || pod_goes_beside(pod, item))
			continue;
		snprintf(name, sizeof name, "the init container %.255s", pod_read_text(item, "name"));
		pod_read_end(ended, name, status);
		return true;
	}
	ended = pod_read_object(pod_agent_state(pod_status), "terminated");
	if (ended != NULL)
		pod_read_end(ended, "the agent", status);
	return ended != NULL;
}

static void
pod_read_failure(struct json_object *pod, struct pod_status *status)
{
	struct json_object *pod_status = pod_read_object(pod, "status");
	const char *reason = pod_read_text(pod_status, "reason"), *text = pod_read_text(pod_status, "message");

	status->phase = POD_FAILED;
	pod_read_ends(pod, status); /* for exit_code and oom_killed, whatever the words are */
	if (pod_read_disruption(pod_status, status))
		return;
	if (reason[0] != '\0') {
		pod_read_copy(pod_status, "reason", status->reason, sizeof status->reason);
		pod_say(status, "the pod failed (%.63s)%s%s", reason, pod_colon(text), text);
	} else if (status->words[0] == '\0')
		pod_say(status, "the pod failed%s%s", pod_colon(text), text);
}

/* While the cluster pauses between two tries it says less than when it tried: what it said then is kept. */
static void
pod_keep_words(const struct pod_status *before, struct pod_status *status)
{
	if (before == NULL || before->trouble != status->trouble)
		return;
	status->trouble_since_ms = before->trouble_since_ms;
	if (strcmp(status->reason, "ImagePullBackOff") != 0 || strcmp(before->reason, "ImagePullBackOff") == 0)
		return;
	memcpy(status->reason, before->reason, sizeof status->reason);
	memcpy(status->words, before->words, sizeof status->words);
}

/* True when the container waits for more than its turn. */
static bool
pod_read_waiting(
	struct json_object *item, const struct pod_status *before, int64_t now_ms, struct pod_status *status)
{
	struct json_object *waiting = pod_read_object(pod_read_object(item, "state"), "waiting");
	const char *reason = pod_read_text(waiting, "reason"), *text = pod_read_text(waiting, "message");

	for (size_t i = 0; i < sizeof pod_reasons / sizeof pod_reasons[0]; i++) {
		if (strcmp(pod_reasons[i].reason, reason) != 0)
			continue;
		status->phase = pod_reasons[i].final ? POD_FAILED : POD_WAITING;
		status->trouble = pod_reasons[i].trouble;
		status->trouble_since_ms = now_ms;
		pod_read_copy(waiting, "reason", status->reason, sizeof status->reason);
		pod_say(status, "%s (%s)%s%s",
			status->trouble == POD_TROUBLE_IMAGE ? "the image cannot be fetched"
							     : "the container cannot be started",
			reason, pod_colon(text), text);
		pod_keep_words(before, status);
		return true;
	}
	return false;
}

/* While the agent runs, it does not matter what others beside it wait for. */
static bool
pod_read_all_waiting(
	struct json_object *pod_status, const struct pod_status *before, int64_t now_ms, struct pod_status *status)
{
	static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };

	if (pod_read_object(pod_agent_state(pod_status), "running") != NULL)
		return false;
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		struct json_object *list = pod_read_array(pod_status, lists[i]);

		for (size_t j = 0; list != NULL && j < json_object_array_length(list); j++)
			if (pod_read_waiting(json_object_array_get_idx(list, j), before, now_ms, status))
				return true;
	}
	return false;
}

static bool
pod_read_unscheduled(struct json_object *pod_status, struct pod_status *status)
{
	struct json_object *condition = pod_condition(pod_status, "PodScheduled");
	const char *text = pod_read_text(condition, "message");

	if (!pod_condition_is(condition, "False"))
		return false;
	pod_read_copy(condition, "reason", status->reason, sizeof status->reason);
	status->phase = strcmp(status->reason, "Unschedulable") == 0 ? POD_UNSCHEDULABLE : POD_WAITING;
	pod_say(status, "no node takes the pod%s%s", pod_colon(text), text);
	return true;
}

/*
 * A pod's readiness is its node's to tell, with a reason, or with containers that are not ready either. What took it away
 * from a pod whose containers stay ready, without a reason, is the control plane, which has not heard from the node.
 */
static bool
pod_is_lost(struct json_object *pod_status)
{
	struct json_object *ready = pod_condition(pod_status, "Ready");
	const char *reason = pod_read_text(ready, "reason");

	if (pod_condition_is(ready, "Unknown"))
		return true;
	if (pod_condition_is(pod_condition(pod_status, "ContainersReady"), "False"))
		return false;
	return pod_condition_is(ready, "False") && strncmp(reason, "Containers", strlen("Containers")) != 0 &&
		strcmp(reason, "ReadinessGatesNotReady") != 0;
}

static void
pod_lost(struct pod_status *status, const char *reason)
{
	status->phase = POD_LOST;
	status->node_lost = true;
	snprintf(status->reason, sizeof status->reason, "%s", reason);
	pod_say(status, "the pod's node does not answer%s%s", pod_colon(status->node), status->node);
}

static bool
pod_inits_done(struct json_object *pod)
{
	struct json_object *list = pod_read_array(pod_read_object(pod, "status"), "initContainerStatuses");

	for (size_t i = 0; list != NULL && i < json_object_array_length(list); i++) {
		struct json_object *item = json_object_array_get_idx(list, i);
		bool done = pod_goes_beside(pod, item)
			? pod_read_bool(item, "started")
			: pod_read_object(pod_read_object(item, "state"), "terminated") != NULL;

		if (!done)
			return false;
	}
	return true;
}

static const char *
pod_waiting_words(struct json_object *pod_status, const struct pod_status *status)
{
	if (status->node[0] == '\0')
		return "the pod waits for a node";
	if (pod_condition_is(pod_condition(pod_status, "PodReadyToStartContainers"), "False"))
		return "the pod's network and volumes are being made";
	return "the pod's containers are being made";
}

/* True when it is not the container that ran before: kubelet starts no other, but not every node is one. */
static bool
pod_is_anew(struct json_object *agent, struct pod_status *status)
{
	const char *container = pod_read_text(agent, "containerID");

	if (status->container[0] == '\0')
		pod_read_copy(agent, "containerID", status->container, sizeof status->container);
	return container[0] != '\0' && strncmp(container, status->container, sizeof status->container - 1) != 0;
}

/* Its node tells of a container that runs when it looks again, up to a second later. */
static void
pod_read_running(struct json_object *pod, struct pod_status *status)
{
	struct json_object *pod_status = pod_read_object(pod, "status");
	struct json_object *state = pod_agent_state(pod_status), *running = pod_read_object(state, "running");

	status->phase = POD_WAITING;
	if (running == NULL || status->ip[0] == '\0') {
		pod_say(status, "%s", pod_waiting_words(pod_status, status));
		if (status->ip[0] != '\0' && pod_read_object(state, "waiting") != NULL && pod_inits_done(pod))
			status->phase = POD_STARTING;
		return;
	}
	status->phase = POD_RUNNING;
	if (pod_is_anew(pod_agent(pod_status), status)) {
		status->phase = POD_FAILED;
		pod_say(status, "the agent was started anew, and what was in the pod is lost%s%s",
			pod_colon(status->node), status->node);
	} else if (pod_is_lost(pod_status))
		pod_lost(status, "NodeNotReady");
}

static void
pod_read_phase(struct json_object *pod, const struct pod_status *before, int64_t now_ms, struct pod_status *status)
{
	struct json_object *pod_status = pod_read_object(pod, "status");
	const char *phase = pod_read_text(pod_status, "phase");

	if (pod_read_text(pod_read_object(pod, "metadata"), "deletionTimestamp")[0] != '\0') {
		pod_read_failure(pod, status);
		if (!status->evicted && !status->node_lost &&
			(status->exit_code < 0 || status->exit_code == 128 + SIGTERM))
			pod_say(status, "the pod is being deleted");
		status->phase = POD_GOING;
	} else if (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0) {
		pod_read_failure(pod, status);
	} else if (strcmp(phase, "Unknown") == 0) {
		pod_lost(status, "NodeLost");
	} else if (pod_read_unscheduled(pod_status, status)) {
		return;
	} else if (pod_read_ends(pod, status)) {
		status->phase = POD_FAILED;
	} else if (!pod_read_all_waiting(pod_status, before, now_ms, status)) {
		pod_read_running(pod, status);
	}
}

void
pod_status_read(
	struct json_object *pod, const struct pod_status *before, int64_t now_ms, struct pod_status *ret_status)
{
	struct pod_status status = { .exit_code = -1 };

	if (before != NULL)
		memcpy(status.container, before->container, sizeof status.container);
	pod_read_identity(pod, &status);
	pod_read_copy(pod_read_object(pod, "status"), "podIP", status.ip, sizeof status.ip);
	pod_read_copy(pod_read_object(pod, "spec"), "nodeName", status.node, sizeof status.node);
	pod_read_phase(pod, before, now_ms, &status);
	*ret_status = status;
}

const char *
pod_phase_name(enum pod_phase phase)
{
	static const char *const names[] = {
		[POD_WAITING] = "waiting",
		[POD_UNSCHEDULABLE] = "unschedulable",
		[POD_STARTING] = "starting",
		[POD_RUNNING] = "running",
		[POD_LOST] = "lost",
		[POD_FAILED] = "failed",
		[POD_GOING] = "going",
	};

	return names[phase];
}
