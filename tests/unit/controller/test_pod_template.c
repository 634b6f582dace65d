/* test_pod_template.c - an operator's pod over ours: merged by name, and refused where no sandbox would be left. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_template.h"

#include "controller/pod_spec.h"
#include "ipc/spawn_msg.h"
#include "pods.h"

#include <stdio.h>
#include <unistd.h>

static void
test_merge_by_rules_of_patches(void **state)
{
	static const struct {
		const char *ours, *template, *merged;
	} cases[] = {
		{ "{'a':1,'b':{'c':2,'d':3}}", "{'b':{'c':9,'e':4}}", "{'a':1,'b':{'c':9,'d':3,'e':4}}" },
		{ "{'a':1,'b':2}", "{'b':null,'x':null}", "{'a':1}" },
		{ "{'containers':[{'name':'x','image':'i'}]}",
			"{'containers':[{'name':'y','image':'j'},{'name':'x','tty':true}]}",
			"{'containers':[{'name':'x','image':'i','tty':true},{'name':'y','image':'j'}]}" },
		{ "{'env':[{'name':'A','value':'1'}]}",
			"{'env':[{'name':'A','value':'2'},{'name':'B','value':'3'}]}",
			"{'env':[{'name':'A','value':'2'},{'name':'B','value':'3'}]}" },
		{ "{'volumeMounts':[{'name':'v','mountPath':'/v'}]}",
			"{'volumeMounts':[{'name':'w','mountPath':'/w'},{'name':'v','mountPath':'/"
			"v','readOnly':true}]}",
			"{'volumeMounts':[{'name':'v','mountPath':'/v','readOnly':true},{'name':'w','mountPath':'/"
			"w'}]}" },
		{ "{'ports':[{'containerPort':9090}]}",
			"{'ports':[{'containerPort':80},{'containerPort':9090,'name':'n'}]}",
			"{'ports':[{'containerPort':9090,'name':'n'},{'containerPort':80}]}" },
		{ "{'tolerations':[{'key':'a'}]}", "{'tolerations':[{'key':'a'},{'key':'b'}]}",
			"{'tolerations':[{'key':'a'},{'key':'a'},{'key':'b'}]}" },
		{ "{'command':['a','b']}", "{'command':['c']}", "{'command':['c']}" },
		{ "{'volumes':'odd'}", "{'volumes':[{'name':'v','emptyDir':{}}]}",
			"{'volumes':[{'name':'v','emptyDir':{}}]}" },
		{ "{}", "{'affinity':{'nodeAffinity':{'x':[1]}}}", "{'affinity':{'nodeAffinity':{'x':[1]}}}" },
		/* null inside of what is new is no member either */
		{ "{}", "{'securityContext':{'runAsUser':null,'runAsNonRoot':true}}",
			"{'securityContext':{'runAsNonRoot':true}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_JSON struct json_object *pod = pods_json(cases[i].ours),
					     *template = pods_json(cases[i].template);
		AUTO_JSON struct json_object *want = pods_json(cases[i].merged);
		struct err err;

		if (pod_template_merge(pod, template, &err) != 0)
			fail_msg("%s: %s", cases[i].template, err.msg);
		if (strcmp(json_text(pod, NULL), json_text(want, NULL)) != 0)
			fail_msg("%s over %s: %s", cases[i].template, cases[i].ours, json_text(pod, NULL));
	}
}

static void
test_what_cannot_be_merged(void **state)
{
	static const struct {
		const char *template, *words;
	} cases[] = {
		{ "{'containers':[{'image':'x'}]}", "containers" },
		{ "{'volumes':['v']}", "volumes" },
		{ "{'containers':[{'name':'x','env':[7]}]}", "containers: each element of env" },
		{ "{'containers':[{'name':'x','$patch':'delete'}]}", "directives" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_JSON struct json_object *pod = pods_json("{}"), *template = pods_json(cases[i].template);
		struct err err;

		assert_int_equal(pod_template_merge(pod, template, &err), -1);
		if (strstr(err.msg, cases[i].words) == NULL)
			fail_msg("%s: %s", cases[i].template, err.msg);
	}
}

/* 0 when the settings are taken with that template. */
static int
create_with(const char *text, struct pod_spec **ret_spec, struct config **ret_config, struct err *err)
{
	char path[] = "/tmp/orchard-test-template-XXXXXX";
	int fd = mkstemp(path), rc;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	*ret_config = PODS_CONFIG("POD_TEMPLATE_FILE", path);
	rc = pod_spec_create(*ret_config, ret_spec, err);
	unlink(path);
	return rc;
}

static void
test_a_template_in_yaml_reaches_the_pod(void **state)
{
	static const char text[] = "metadata:\n"
				   "  labels: {team: red}\n"
				   "spec:\n"
				   "  containers:\n"
				   "  - name: sandbox\n"
				   "    resources: {limits: {example.com/gpu: 1}}\n"
				   "    env:\n"
				   "    - {name: HTTP_PROXY, value: 'http://proxy:3128'}\n"
				   "  - name: logs\n"
				   "    image: logger:1\n"
				   "  volumes:\n"
				   "  - name: data\n"
				   "    persistentVolumeClaim: {claimName: shared}\n";
	struct spawn_create create = {
		.id = "a1", .uid = "u", .token = "t", .image = "i", .cpu_milli = 1000, .memory_bytes = 1 << 30
	};
	struct pod_order order = { .create = &create, .env = "" };
	AUTO_JSON struct json_object *pod = NULL;
	struct config *config;
	struct pod_spec *spec;
	struct err err;

	(void)state;
	if (create_with(text, &spec, &config, &err) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(pod_spec_make(spec, &order, &pod, &err), 0);
	assert_string_equal(pods_text(pod, "metadata/labels/team"), "red");
	assert_string_equal(pods_text(pod, "metadata/labels/sandbox-id"), "a1");
	assert_string_equal(pods_text(pod, "spec/containers/0/env/1/name"), "HTTP_PROXY");
	assert_string_equal(pods_text(pod, "spec/containers/0/resources/limits"),
		"{\"cpu\":\"1\",\"memory\":\"1Gi\",\"example.com/gpu\":1}");
	assert_string_equal(pods_text(pod, "spec/containers/1/name"), "logs");
	assert_string_equal(pods_text(pod, "spec/volumes/1/persistentVolumeClaim/claimName"), "shared");
	pod_spec_free(spec);
	config_free(config);
}

static void
test_templates_that_would_break_sandboxes(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ "spec: {restartPolicy: Always}", "spec/restartPolicy" },
		{ "spec: {hostNetwork: true}", "spec/hostNetwork" },
		{ "spec: {hostPID: true}", "spec/hostPID" },
		{ "spec: {hostIPC: true}", "spec/hostIPC" },
		{ "spec: {containers: [{name: sandbox, restartPolicy: Always}]}", "restartPolicy" },
		{ "spec: {containers: [{name: sandbox, restartPolicyRules: [{action: Restart}]}]}",
			"restartPolicyRules" },
		{ "sepc: {hostUsers: false}", "sepc has no place" },
		{ "status: {phase: Running}", "status has no place" },
		{ "metadata: {finalizers: [a/b]}", "metadata/finalizers has no place" },
		{ "metadata: {ownerReferences: [{uid: a}]}", "metadata/ownerReferences has no place" },
		{ "metadata: {uid: a}", "metadata/uid has no place" },
		{ "spec: {shareProcessNamespace: true}", "spec/shareProcessNamespace" },
		{ "metadata: {name: other}", "metadata/name" },
		{ "metadata: {labels: {sandbox-uid: x}}", "sandbox-uid" },
		{ "spec: {containers: [{name: sandbox, command: [sh]}]}", "command" },
		{ "spec: {containers: [{name: sandbox, args: [sh]}]}", "args" },
		{ "spec: {containers: [{name: sandbox, image: other}]}", "image" },
		{ "spec: {containers: [{name: sandbox, env: [{name: ORCHARD_AGENT_CONFIG, value: '{}'}]}]}",
			"ORCHARD_AGENT_CONFIG" },
		{ "spec: {containers: [{name: sandbox, volumeMounts: [{name: mine, mountPath: "
		  "/opt/orchard-agent}]}]}",
			"volumeMounts" },
		{ "spec: {containers: null}", "image" },
		{ "spec: {volumes: [{name: orchard-agent, hostPath: {path: /tmp}}]}", "volumes" },
		{ "spec: {initContainers: [{name: orchard-agent, image: mine}]}", "initContainers" },
		{ "- a\n- b\n", "must be a pod" },
		{ "spec: {a: 1, a: 2}", "pod_template_file" },
		{ "spec: [", "pod_template_file" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct config *config;
		struct pod_spec *spec;
		struct err err;

		if (create_with(cases[i].text, &spec, &config, &err) == 0)
			fail_msg("%s was taken", cases[i].text);
		if (strstr(err.msg, cases[i].words) == NULL)
			fail_msg("%s: %s", cases[i].text, err.msg);
		config_free(config);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge_by_rules_of_patches),
		cmocka_unit_test(test_what_cannot_be_merged),
		cmocka_unit_test(test_a_template_in_yaml_reaches_the_pod),
		cmocka_unit_test(test_templates_that_would_break_sandboxes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
