/* test_pod_status.c - what pods mean, by a table of pods as clusters show them. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_status.h"

#include "base/text.h"
#include "pods.h"

#include <stdio.h>

#define LABELS             "'labels':{'app':'sandbox','sandbox-id':'a1','sandbox-uid':'11111111-2222-3333-4444-555555555555'}"
#define METADATA           "'metadata':{'name':'sandbox-a1','uid':'pod-1'," LABELS "}"
#define GOING              "'metadata':{'name':'sandbox-a1','uid':'pod-1','deletionTimestamp':'2026-01-01T00:00:00Z'," LABELS "}"
#define MAIN(state)        "'containerStatuses':[{'name':'sandbox','state':{" state "}}]"
#define WAITING(why, text) "'waiting':{'reason':'" why "','message':'" text "'}"
#define RUNNING            MAIN("'running':{'startedAt':'2026-01-01T00:00:00Z'}")
#define CREATING           MAIN("'waiting':{'reason':'PodInitializing'}")
#define INIT(state)                                                                                                \
	"'phase':'Pending','podIP':'10.0.0.9','initContainerStatuses':[{'name':'orchard-agent','state':{" state    \
	"}}]"
#define READY(value, why) "'conditions':[{'type':'Ready','status':'" value "','reason':'" why "'}]"
#define UP                "'phase':'Running','podIP':'10.0.0.9'," RUNNING
#define BESIDE(status, started, state, rest)                                                                       \
	"{" METADATA                                                                                               \
	",'spec':{'nodeName':'n1','initContainers':[{'name':'orchard-agent'},{'name':'proxy','restartPolicy':"     \
	"'Always'}]},'status':{'podIP':'10.0.0.9','initContainerStatuses':[{'name':'orchard-agent','state':"       \
	"{'terminated':{'exitCode':0}}},{'name':'proxy','started':" started ",'state':{" state "}}]," rest         \
	"," status "}}"
#define POD(status) "{" METADATA ",'spec':{'nodeName':'n1'},'status':{" status "}}"

struct expected {
	const char *pod;
	enum pod_phase phase;
	enum pod_trouble trouble;
	const char *reason, *words; /* words: a part of them */
	bool oom, evicted, node_lost;
	int exit_code; /* 0 stands for -1 here; no test has an agent that ended well */
};

static const struct expected cases[] = {
	/* waits */
	{ .pod = "{" METADATA "}", .phase = POD_WAITING, .words = "waits for a node" },
	{ .pod = POD("'phase':'Pending'"), .phase = POD_WAITING, .words = "being made" },
	{ .pod = POD("'phase':'Pending'," MAIN("'waiting':{'reason':'ContainerCreating'}")), .phase = POD_WAITING },
	{ .pod = POD("'phase':'Pending','conditions':[{'type':'PodReadyToStartContainers','status':'False'}]"),
		.phase = POD_WAITING,
		.words = "the pod's network and volumes are being made" },
	{ .pod = POD("'phase':'Pending','conditions':[{'type':'PodReadyToStartContainers','status':'True'}]"),
		.phase = POD_WAITING,
		.words = "the pod's containers are being made" },
	{ .pod = POD("'phase':'Running'," RUNNING), .phase = POD_WAITING }, /* no address yet */
	{ .pod = POD(INIT("'running':{}") "," CREATING), .phase = POD_WAITING, .words = "being made" },
	{ .pod = POD(INIT("'terminated':{'exitCode':0}") "," CREATING),
		.phase = POD_STARTING,
		.words = "being made" },
	{ .pod = POD("'phase':'Pending','podIP':'10.0.0.9'," CREATING),
		.phase = POD_STARTING,
		.words = "being made" },
	/* nowhere to go */
	{ .pod = POD("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		     "'reason':'Unschedulable','message':'0/3 nodes are available: 3 Insufficient cpu.'}]"),
		.phase = POD_UNSCHEDULABLE,
		.reason = "Unschedulable",
		.words = "0/3 nodes are available: 3 Insufficient cpu." },
	{ .pod = POD("'phase':'Pending','conditions':[{'type':'PodScheduled','status':'False',"
		     "'reason':'SchedulingGated','message':'gated'}]"),
		.phase = POD_WAITING,
		.reason = "SchedulingGated",
		.words = "gated" },
	/* B109 */
	{ .pod = POD("'phase':'Pending'," MAIN(WAITING("ErrImagePull", "not found: manifest unknown"))),
		.phase = POD_WAITING,
		.trouble = POD_TROUBLE_IMAGE,
		.reason = "ErrImagePull",
		.words = "not found: manifest unknown" },
	{ .pod = POD("'phase':'Pending'," MAIN(WAITING("InvalidImageName", "could not parse"))),
		.phase = POD_FAILED,
		.trouble = POD_TROUBLE_IMAGE,
		.reason = "InvalidImageName",
		.words = "could not parse" },
	{ .pod = POD("'phase':'Pending','initContainerStatuses':[{'name':'orchard-agent','state':{" WAITING(
		  "ImagePullBackOff",
		  "Back-off pulling image") "}}]," MAIN("'waiting':{'reason':'PodInitializing'}")),
		.phase = POD_WAITING,
		.trouble = POD_TROUBLE_IMAGE,
		.reason = "ImagePullBackOff",
		.words = "Back-off pulling image" },
	/* B110 */
	{ .pod = POD("'phase':'Pending'," MAIN(WAITING("CreateContainerError", "no command specified"))),
		.phase = POD_WAITING,
		.trouble = POD_TROUBLE_START,
		.reason = "CreateContainerError",
		.words = "no command specified" },
	{ .pod = POD("'phase':'Failed','initContainerStatuses':[{'name':'orchard-agent','state':{'terminated':"
		     "{'exitCode':1,'reason':'Error','message':'no space'}}}]"),
		.phase = POD_FAILED,
		.reason = "Error",
		.words = "the init container orchard-agent ended with exit code 1: no space",
		.exit_code = 1 },
	{ .pod = POD("'phase':'Failed'," MAIN(
		  "'terminated':{'exitCode':128,'reason':'StartError','message':'exec format error'}")),
		.phase = POD_FAILED,
		.reason = "StartError",
		.words = "the agent could not be started (StartError): exec format error",
		.exit_code = 128 },
	{ .pod = POD("'phase':'Running'," MAIN("'terminated':{'exitCode':139,'reason':'Error'}")),
		.phase = POD_FAILED,
		.reason = "Error",
		.words = "the agent was killed by signal 11",
		.exit_code = 139 },
	{ .pod = POD("'phase':'Failed'," MAIN("'terminated':{'exitCode':137,'reason':'ContainerStatusUnknown','"
					      "message':'The container could not be "
					      "located when the pod was terminated'}")),
		.phase = POD_FAILED,
		.reason = "ContainerStatusUnknown",
		.words = "the agent has ended, and its node does not know how (ContainerStatusUnknown): The "
			 "container",
		.exit_code = 137 },
	{ .pod = POD("'phase':'Running'," MAIN("'terminated':{'exitCode':255,'reason':'Unknown'}")),
		.phase = POD_FAILED,
		.reason = "Unknown",
		.words = "the agent has ended, and its node does not know how (Unknown)",
		.exit_code = 255 },
	/* B113 */
	{ .pod = POD(UP), .phase = POD_RUNNING, .words = NULL },
	{ .pod = POD(UP "," READY("True", "")), .phase = POD_RUNNING },
	{ .pod = POD(UP "," READY("False", "ContainersNotReady")), .phase = POD_RUNNING },
	{ .pod = POD(UP ",'conditions':[{'type':'Ready','status':'False'},"
			"{'type':'ContainersReady','status':'False'}]"),
		.phase = POD_RUNNING },
	{ .pod = POD(UP ",'conditions':[{'type':'Ready','status':'False'},"
			"{'type':'ContainersReady','status':'True'}]"),
		.phase = POD_LOST,
		.reason = "NodeNotReady",
		.words = "does not answer: n1",
		.node_lost = true },
	{ .pod = POD(UP "," READY("False", "")),
		.phase = POD_LOST,
		.reason = "NodeNotReady",
		.words = "does not answer: n1",
		.node_lost = true },
	{ .pod = POD(UP "," READY("Unknown", "NodeStatusUnknown")),
		.phase = POD_LOST,
		.reason = "NodeNotReady",
		.words = "does not answer",
		.node_lost = true },
	{ .pod = POD("'phase':'Unknown','podIP':'10.0.0.9'," RUNNING),
		.phase = POD_LOST,
		.reason = "NodeLost",
		.words = "does not answer",
		.node_lost = true },
	{ .pod = "{" GOING ",'status':{" UP "," READY("True", "") "}}",
		.phase = POD_GOING,
		.words = "is being deleted" },
	{ .pod = "{" GOING
		 ",'status':{'phase':'Running'," MAIN("'terminated':{'exitCode':143,'reason':'Error'}") "}}",
		.phase = POD_GOING,
		.reason = "Error",
		.words = "is being deleted",
		.exit_code = 143 },
	{ .pod = "{" GOING ",'status':{" UP ",'conditions':[{'type':'DisruptionTarget','status':'True',"
		 "'reason':'DeletionByTaintManager','message':'Taint manager: deleting due to NoExecute taint'}]}}",
		.phase = POD_GOING,
		.reason = "DeletionByTaintManager",
		.words = "lost or took no pods any more: Taint manager",
		.node_lost = true },
	{ .pod = POD("'phase':'Failed','reason':'Evicted','message':'The node was low on resource: memory.',"
		     "'podIP':'10.0.0.9'," RUNNING),
		.phase = POD_FAILED,
		.reason = "Evicted",
		.words = "the pod was evicted: The node was low on resource: memory.",
		.evicted = true },
	{ .pod = POD(
		  "'phase':'Failed','reason':'Evicted','message':'Usage exceeds the total limit of 20Mi. '," MAIN(
			  "'terminated':{'exitCode':143,'reason':'Error'}")),
		.phase = POD_FAILED,
		.reason = "Evicted",
		.words = "the pod was evicted: Usage exceeds the total limit of 20Mi.",
		.evicted = true,
		.exit_code = 143 },
	{ .pod = POD("'phase':'Failed','conditions':[{'type':'DisruptionTarget','status':'True',"
		     "'reason':'PreemptionByScheduler','message':'preempting'}]," MAIN(
			     "'terminated':{'exitCode':137}")),
		.phase = POD_FAILED,
		.reason = "PreemptionByScheduler",
		.words = "had to make room",
		.evicted = true,
		.exit_code = 137 },
	{ .pod = POD(
		  "'phase':'Failed','reason':'NodeShutdown','message':'Pod was terminated in response to imminent "
		  "node shutdown.'"),
		.phase = POD_FAILED,
		.reason = "NodeShutdown",
		.words = "node was shut down",
		.evicted = true,
		.node_lost = true },
	{ .pod = POD("'phase':'Failed','reason':'OutOfcpu','message':'Node did not have enough resource: cpu'"),
		.phase = POD_FAILED,
		.reason = "OutOfcpu",
		.words = "the pod failed (OutOfcpu): Node did not have enough" },
	{ .pod = POD("'phase':'Failed'," MAIN("'terminated':{'exitCode':137,'reason':'OOMKilled'}")),
		.phase = POD_FAILED,
		.reason = "OOMKilled",
		.words = "had used all of its memory",
		.oom = true,
		.exit_code = 137 },
	{ .pod = POD("'phase':'Succeeded'"), .phase = POD_FAILED, .words = "the pod failed" },
	/* containers beside the agent, as a template or a webhook puts them there */
	{ .pod = BESIDE("'phase':'Running'", "false", "'terminated':{'exitCode':1}", RUNNING),
		.phase = POD_RUNNING },
	{ .pod = BESIDE("'phase':'Running'", "false", WAITING("CrashLoopBackOff", "back-off"), RUNNING),
		.phase = POD_RUNNING },
	{ .pod = BESIDE("'phase':'Pending'", "true", "'running':{}", CREATING),
		.phase = POD_STARTING,
		.words = "being made" },
	{ .pod = BESIDE("'phase':'Pending'", "false", "'running':{}", CREATING),
		.phase = POD_WAITING,
		.words = "being made" },
	{ .pod = BESIDE("'phase':'Pending'", "false", WAITING("CrashLoopBackOff", "back-off"), CREATING),
		.phase = POD_WAITING,
		.trouble = POD_TROUBLE_START,
		.reason = "CrashLoopBackOff",
		.words = "back-off" },
	{ .pod = POD("'phase':'Pending','podIP':'10.0.0.9','containerStatuses':[{'name':'sandbox','state':{"
		     "'running':{}}},{'name':'metrics','state':{" WAITING("ImagePullBackOff", "not found") "}}]"),
		.phase = POD_RUNNING },
	{ .pod = POD("'phase':'Running','podIP':'10.0.0.9','containerStatuses':[{'name':'metrics','state':{"
		     "'terminated':{'exitCode':1}}},{'name':'sandbox','state':{'running':{}}}]"),
		.phase = POD_RUNNING },
	/* what nobody should send */
	{ .pod = POD("'phase':7,'conditions':{},'containerStatuses':[1,null,'x'],'podIP':[]"),
		.phase = POD_WAITING },
	{ .pod = POD("'phase':'Running','podIP':'1.2.3.4','containerStatuses':[{'name':'sidecar','state':{'running'"
		     ":{}}}]"),
		.phase = POD_WAITING },
};

static void
test_pods_mean_what_they_say(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct expected *want = &cases[i];
		AUTO_JSON struct json_object *pod = pods_json(want->pod);
		struct pod_status status;

		pod_status_read(pod, NULL, 1000, &status);
		if (status.phase != want->phase || status.trouble != want->trouble ||
			strcmp(status.reason, want->reason == NULL ? "" : want->reason) != 0 ||
			(want->words != NULL && strstr(status.words, want->words) == NULL) ||
			status.oom_killed != want->oom || status.evicted != want->evicted ||
			status.node_lost != want->node_lost ||
			status.exit_code != (want->exit_code == 0 ? -1 : want->exit_code))
			fail_msg("%s -> %s, trouble %d, reason '%s', words '%s', exit %d", want->pod,
				pod_phase_name(status.phase), (int)status.trouble, status.reason, status.words,
				status.exit_code);
		assert_string_equal(status.id, "a1");
		assert_string_equal(status.pod_uid, "pod-1");
		assert_int_equal(status.trouble_since_ms, want->trouble == POD_TROUBLE_NONE ? 0 : 1000);
		if (status.phase == POD_RUNNING)
			assert_string_equal(status.words, "");
		else
			assert_int_not_equal(status.words[strlen(status.words) - 1], ' ');
	}
}

/* B109: the window is counted from the first failure, and the runtime's text outlives the pauses between tries. */
static void
test_trouble_keeps_its_beginning_and_words(void **state)
{
	AUTO_JSON struct json_object *tried = pods_json(
		POD("'phase':'Pending'," MAIN(WAITING("ErrImagePull", "manifest unknown"))));
	AUTO_JSON struct json_object *pauses = pods_json(
		POD("'phase':'Pending'," MAIN(WAITING("ImagePullBackOff", "Back-off pulling"))));
	AUTO_JSON struct json_object *creating = pods_json(
		POD("'phase':'Pending'," MAIN("'waiting':{'reason':'ContainerCreating'}")));
	struct pod_status status;

	(void)state;
	pod_status_read(tried, NULL, 1000, &status);
	pod_status_read(pauses, &status, 21000, &status);
	assert_int_equal(status.trouble_since_ms, 1000);
	assert_non_null(strstr(status.words, "manifest unknown"));
	assert_string_equal(status.reason, "ErrImagePull");
	pod_status_read(pauses, &status, 31000, &status);
	assert_non_null(strstr(status.words, "manifest unknown"));
	pod_status_read(tried, &status, 41000, &status);
	assert_int_equal(status.trouble_since_ms, 1000);
	pod_status_read(creating, &status, 51000, &status);
	assert_int_equal(status.trouble, POD_TROUBLE_NONE);
	assert_int_equal(status.trouble_since_ms, 0);
	pod_status_read(tried, &status, 61000, &status);
	assert_int_equal(status.trouble_since_ms, 61000);
}

/* B113: whatever made the node run it once more, as the same pod. kubelet does not of itself. */
static void
test_a_pod_that_is_begun_anew_has_failed(void **state)
{
#define AS(id)                                                                                                     \
	POD("'phase':'Running','podIP':'10.0.0.9','containerStatuses':[{'name':'sandbox','containerID':'" id       \
	    "','state':{'running':{}}}]")
	AUTO_JSON struct json_object *first = pods_json(AS("containerd://1"));
	AUTO_JSON struct json_object *second = pods_json(AS("containerd://2"));
	AUTO_JSON struct json_object *unnamed = pods_json(POD(UP));
	AUTO_JSON struct json_object *between = pods_json(POD("'phase':'Pending','podIP':'10.0.0.9'," CREATING));
	struct pod_status status;

	(void)state;
	pod_status_read(unnamed, NULL, 1000, &status);
	pod_status_read(first, &status, 1000, &status);
	pod_status_read(first, &status, 1000, &status);
	assert_int_equal(status.phase, POD_RUNNING);
	pod_status_read(unnamed, &status, 1000, &status);
	assert_int_equal(status.phase, POD_RUNNING);
	pod_status_read(between, &status, 1000, &status);
	assert_int_equal(status.phase, POD_STARTING);
	pod_status_read(second, &status, 1000, &status);
	assert_int_equal(status.phase, POD_FAILED);
	assert_non_null(strstr(status.words, "anew"));
	assert_non_null(strstr(status.words, ": n1"));
	pod_status_read(second, &status, 1000, &status);
	assert_int_equal(status.phase, POD_FAILED);
#undef AS
}

static void
test_only_pods_with_our_labels_are_ours(void **state)
{
	static const char *const foreign[] = {
		"{}",
		"{'metadata':{'name':'sandbox-a1'}}",
		"{'metadata':{'labels':{'app':'other','sandbox-id':'a1','sandbox-uid':'11111111-2222-3333-4444-"
		"555555555555'}}}",
		"{'metadata':{'labels':{'app':'sandbox','sandbox-id':'a1'}}}",
		"{'metadata':{'labels':{'app':'sandbox','sandbox-id':'A_1','sandbox-uid':'11111111-2222-3333-4444-"
		"555555555555'}}}",
		"{'metadata':{'labels':{'app':'sandbox','sandbox-id':'a1','sandbox-uid':'../x'}}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
		AUTO_JSON struct json_object *pod = pods_json(foreign[i]);
		struct pod_status status;

		pod_status_read(pod, NULL, 1, &status);
		assert_string_equal(status.id, "");
		assert_string_equal(status.uid, "");
	}
}

static void
test_long_words_are_cut_between_characters(void **state)
{
	char text[2000], pod_text[4000];
	AUTO_JSON struct json_object *pod = NULL;
	struct pod_status status;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	for (size_t i = 0; i + 3 < sizeof text; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	snprintf(pod_text, sizeof pod_text,
		"{" METADATA ",'status':{'phase':'Failed','reason':'%s','message':'%s'}}",
		"LongReasonLongReasonLongReasonLongReasonLongReasonLongReasonLongReasonLongReason", text);
	pod = pods_json(pod_text);
	pod_status_read(pod, NULL, 1, &status);
	assert_true(strlen(status.words) > 400);
	assert_true(text_utf8_whole(status.words, strlen(status.words)) == strlen(status.words));
	assert_int_equal(strlen(status.reason), sizeof status.reason - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pods_mean_what_they_say),
		cmocka_unit_test(test_trouble_keeps_its_beginning_and_words),
		cmocka_unit_test(test_a_pod_that_is_begun_anew_has_failed),
		cmocka_unit_test(test_only_pods_with_our_labels_are_ours),
		cmocka_unit_test(test_long_words_are_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
