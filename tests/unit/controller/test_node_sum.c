/* test_node_sum.c - nodes and pods summed up, the odd ones with them. */
/* SPDX-License-Identifier: MIT */
#include "controller/node_sum.h"

#include "pods.h"

#define NODE(name, labels, spec, ready, cpu, memory)                                                               \
	"{'metadata':{'name':'" name "','labels':{" labels "}},'spec':{" spec "},'status':{"                       \
	"'capacity':{'cpu':'8','memory':'16Gi'},'allocatable':{'cpu':'" cpu "','memory':'" memory "'},"            \
	"'conditions':[{'type':'MemoryPressure','status':'False'},{'type':'Ready','status':'" ready "'}]}}"
#define OURS "'workload':'sandbox'"
#define POD(name, phase, spec)                                                                                     \
	"{'metadata':{'name':'" name "','namespace':'boxes','labels':{'app':'sandbox'}},'spec':{" spec             \
	"},'status':{'phase':'" phase "'}}"
#define ASKS(cpu, memory) "'resources':{'requests':{'cpu':'" cpu "','memory':'" memory "'}}"

static struct json_object *
sum_of(const struct config *config, const char *const *nodes, const char *const *pods)
{
	struct node_sum *sum = node_sum_create(config);
	struct json_object *made;

	for (; *pods != NULL; pods++) {
		AUTO_JSON struct json_object *pod = pods_json(*pods);

		node_sum_pod(sum, pod);
	}
	for (; *nodes != NULL; nodes++) {
		AUTO_JSON struct json_object *node = pods_json(*nodes);

		node_sum_node(sum, node);
	}
	made = node_sum_json(sum);
	node_sum_free(sum);
	return made;
}

static void
assert_amount(struct json_object *json, const char *path, double cpu, int64_t memory)
{
	struct json_object *amount = pods_at(json, path);

	assert_non_null(amount);
	assert_int_equal((int64_t)(json_object_get_double(pods_at(amount, "cpu")) * 1000 + 0.5),
		(int64_t)(cpu * 1000 + 0.5));
	assert_int_equal(json_object_get_int64(pods_at(amount, "memory_bytes")), memory);
}

static void
test_nodes_that_take_sandboxes_count(void **state)
{
	static const char *const nodes[] = {
		NODE("good", OURS, "", "True", "7500m", "15Gi"),
		NODE("cordoned", OURS, "'unschedulable':true", "True", "7500m", "15Gi"),
		NODE("away", OURS, "", "Unknown", "7500m", "15Gi"),
		NODE("other", "'workload':'servers'", "", "True", "7500m", "15Gi"),
		NULL,
	};
	static const char *const pods[] = {
		POD("sandbox-a", "Running", "'containers':[{" ASKS("500m", "1Gi") "}]"),
		POD("sandbox-b", "Pending", "'containers':[{" ASKS("2", "2Gi") "}]"),
		POD("sandbox-c", "Failed", "'containers':[{" ASKS("2", "2Gi") "}]"),
		"{'metadata':{'name':'stranger'},'spec':{'containers':[{" ASKS("2", "2Gi") "}]}}",
		NULL,
	};
	struct config *config = PODS_CONFIG();
	AUTO_JSON struct json_object *json = sum_of(config, nodes, pods);

	(void)state;
	assert_string_equal(pods_text(json, "status"), "ok");
	assert_int_equal(json_object_array_length(pods_at(json, "nodes")), 3);
	assert_int_equal(json_object_array_length(pods_at(json, "sandbox_pods")), 3);
	assert_amount(json, "nodes/0/allocatable", 7.5, INT64_C(15) << 30);
	assert_amount(json, "nodes/1/allocatable", 0, 0);
	assert_amount(json, "total_capacity", 24, INT64_C(48) << 30);
	assert_amount(json, "total_allocatable", 7.5, INT64_C(15) << 30);
	assert_amount(json, "total_requested", 2.5, INT64_C(3) << 30);
	assert_amount(json, "available", 5, INT64_C(12) << 30);
	assert_string_equal(pods_text(json, "sandbox_pods/2/phase"), "Failed");
	assert_string_equal(pods_text(json, "sandbox_pods/1/namespace"), "boxes");
	assert_string_equal(pods_text(json, "sandbox_pods/1/memory_request_bytes"), "2147483648");
	config_free(config);
}

static void
test_pods_are_counted_as_the_scheduler_does(void **state)
{
	static const struct {
		const char *pod;
		double cpu;
	} cases[] = {
		{ POD("a", "Running", "'containers':[{" ASKS("1", "1") "},{" ASKS("250m", "1") "}]"), 1.25 },
		{ POD("a", "Running",
			  "'initContainers':[{" ASKS("1", "1") "}],'containers':[{" ASKS("1", "1") "}]"),
			1 },
		{ POD("a", "Running",
			  "'initContainers':[{" ASKS("3", "1") "}],'containers':[{" ASKS("1", "1") "}]"),
			3 },
		{ POD("a", "Running",
			  "'initContainers':[{'restartPolicy':'Always'," ASKS("1", "1") "},{" ASKS(
				  "2", "1") "}],"
					    "'containers':[{" ASKS("1", "1") "}]"),
			3 },
		{ POD("a", "Running", "'overhead':{'cpu':'250m'},'containers':[{" ASKS("1", "1") "}]"), 1.25 },
		{ POD("a", "Running", "'containers':[{},null,7]"), 0 },
		{ "{'metadata':{'labels':{'app':'sandbox'}}}", 0 },
	};
	static const char *const no_nodes[] = { NULL };
	struct config *config = PODS_CONFIG();

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_JSON struct json_object *json = sum_of(
			config, no_nodes, (const char *const[]){ cases[i].pod, NULL });
		double cpu = json_object_get_double(pods_at(json, "total_requested/cpu"));

		if ((int64_t)(cpu * 1000 + 0.5) != (int64_t)(cases[i].cpu * 1000 + 0.5))
			fail_msg("%s: %f", cases[i].pod, cpu);
	}
	config_free(config);
}

/* B111: pods with amounts that nobody expects. */
static void
test_odd_amounts_never_break_the_sum(void **state)
{
	static const char *const nodes[] = {
		NODE("n", "", "", "True", "1e3", "1Pi"),
		NODE("m", "", "", "True", "abc", "123456789012345678901"),
		NODE("o", "", "", "True", "-1", "16G b"),
		"{}",
		"{'status':{'allocatable':{'cpu':4,'memory':null}}}",
		NULL,
	};
	static const char *const pods[] = {
		POD("a", "Running", "'containers':[{" ASKS("2k", "8Ei") "}]"),
		POD("b", "Running", "'containers':[{" ASKS("0", "8Ei") "}]"),
		NULL,
	};
	struct config *config = PODS_CONFIG("POD_NODE_SELECTOR", "");
	AUTO_JSON struct json_object *json = sum_of(config, nodes, pods);

	(void)state;
	assert_amount(json, "total_allocatable", 1000, INT64_MAX);
	assert_amount(json, "total_requested", 2000, INT64_MAX);
	assert_amount(json, "available", 0, 0);
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes_that_take_sandboxes_count),
		cmocka_unit_test(test_pods_are_counted_as_the_scheduler_does),
		cmocka_unit_test(test_odd_amounts_never_break_the_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
