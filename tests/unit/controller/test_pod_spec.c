/* test_pod_spec.c - what a pod has by default, what each setting changes, and what is refused. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_spec.h"

#include "base/text.h"
#include "ipc/spawn_msg.h"
#include "pods.h"

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct spawn_create plain = {
	.id = "a1",
	.uid = "11111111-2222-3333-4444-555555555555",
	.token = TOKEN,
	.image = "python:3.11",
	.cpu_milli = 1500,
	.memory_bytes = INT64_C(2) << 30,
};

static struct json_object *
make(const struct config *config, const struct pod_order *order)
{
	struct json_object *pod = NULL;
	struct pod_spec *spec;
	struct err err;

	if (pod_spec_create(config, &spec, &err) != 0)
		fail_msg("%s", err.msg);
	if (pod_spec_make(spec, order, &pod, &err) != 0)
		fail_msg("%s", err.msg);
	pod_spec_free(spec);
	return pod;
}

/* The agent's configuration, out of the container's environment. */
static struct json_object *
agent_config(struct json_object *pod)
{
	const char *text = pods_text(pod, "spec/containers/0/env/0/value");
	struct json_object *made;
	struct err err;

	assert_string_equal(pods_text(pod, "spec/containers/0/env/0/name"), "ORCHARD_AGENT_CONFIG");
	made = json_parse(text, strlen(text), &err);
	assert_non_null(made);
	return made;
}

static void
assert_all(struct json_object *value, const char *const *pairs)
{
	for (; *pairs != NULL; pairs += 2)
		if (strcmp(pods_text(value, pairs[0]), pairs[1]) != 0)
			fail_msg("%s: %s, not %s", pairs[0], pods_text(value, pairs[0]), pairs[1]);
}
#define ASSERT_ALL(value, ...) assert_all(value, (const char *const[]){ __VA_ARGS__, NULL })

static void
test_a_pod_as_it_is_by_default(void **state)
{
	struct config *config = PODS_CONFIG();
	struct pod_order order = { .create = &plain, .env = "" };
	AUTO_JSON struct json_object *pod = make(config, &order);

	(void)state;
	ASSERT_ALL(pod, "apiVersion", "v1", "kind", "Pod", "metadata/name", "sandbox-a1", "metadata/namespace",
		"sandbox-pods", "metadata/labels",
		"{\"app\":\"sandbox\",\"sandbox-id\":\"a1\",\"sandbox-uid\":\"11111111-2222-3333-4444-"
		"555555555555\"}",
		"metadata/annotations", "", "spec/restartPolicy", "Never", "spec/automountServiceAccountToken",
		"false", "spec/enableServiceLinks", "false", "spec/securityContext/seccompProfile/type",
		"RuntimeDefault", "spec/nodeSelector", "{\"workload\":\"sandbox\"}", "spec/tolerations", "",
		"spec/hostUsers", "", "spec/runtimeClassName", "", "spec/priorityClassName", "",
		"spec/imagePullSecrets", "");
	ASSERT_ALL(pods_at(pod, "spec/containers/0"), "name", "sandbox", "image", "python:3.11", "command",
		"[\"/opt/orchard-agent/orchard-agent\"]", "args", "", "workingDir", "", "resources/limits",
		"{\"cpu\":\"1500m\",\"memory\":\"2Gi\"}", "resources/requests",
		"{\"cpu\":\"1500m\",\"memory\":\"2Gi\"}", "securityContext", "{\"allowPrivilegeEscalation\":false}",
		"volumeMounts",
		"[{\"name\":\"orchard-agent\",\"mountPath\":\"/opt/orchard-agent\",\"readOnly\":true}]",
		"ports/0/containerPort", "9090");
	ASSERT_ALL(pods_at(pod, "spec/initContainers/0"), "name", "orchard-agent", "image", "orchard-agent:latest",
		"command", "[\"/orchard-agent\",\"--install\",\"/opt/orchard-agent\"]", "resources/limits/memory",
		"2Gi", "volumeMounts/0/readOnly", "");
	assert_string_equal(pods_text(pod, "spec/volumes"), "[{\"name\":\"orchard-agent\",\"emptyDir\":{}}]");
	config_free(config);
}

/* The token itself is nowhere in the pod, only what it can be recognised by. */
static void
test_the_agents_configuration(void **state)
{
	static const char env[] = "A=1\0B=$(A) \"quoted\" $$";
	struct spawn_create create = plain;
	struct config *config = PODS_CONFIG("ENABLE_SANDBOX_TOOLS", "on", "SANDBOX_TOOLS_IMAGE", "tools:1");
	struct pod_order order = { .create = &create, .env = env };
	AUTO_JSON struct json_object *pod = NULL, *agent = NULL;
	char hex[TEXT_SHA256_HEX_SIZE];

	(void)state;
	create.env_len = sizeof env;
	strcpy(create.working_dir, "/work");
	pod = make(config, &order);
	assert_null(strstr(json_text(pod, NULL), TOKEN));
	agent = agent_config(pod);
	text_sha256_hex(TOKEN, strlen(TOKEN), hex);
	ASSERT_ALL(agent, "sandbox_id", "a1", "sandbox_uid", plain.uid, "token", "", "token_sha256", hex, "listen",
		"tcp:[::]:9090", "working_dir", "/work", "memory_bytes", "2147483648", "path_append",
		"/opt/sandbox-tools/bin", "env/0", "A=1", "env/1", "B=$(A) \"quoted\" $$", "env/2", "");
	config_free(config);
}

/* Kubernetes replaces $(NAME) in the values of variables, and "$$" by "$": what stands there must survive that. */
static void
test_dollars_survive(void **state)
{
	static const char env[] = "A=$(B) $$(C) $";
	struct spawn_create create = plain;
	struct config *config = PODS_CONFIG();
	struct pod_order order = { .create = &create, .env = env };
	AUTO_JSON struct json_object *pod = NULL;

	(void)state;
	create.env_len = sizeof env;
	pod = make(config, &order);
	assert_null(strchr(pods_text(pod, "spec/containers/0/env/0/value"), '$'));
	config_free(config);
}

static void
test_settings_change_the_pod(void **state)
{
	struct spawn_create create = plain;
	struct pod_order order = { .create = &create, .env = "" };
	struct config *config = PODS_CONFIG("SANDBOX_NAMESPACE", "boxes", "POD_NODE_SELECTOR", "",
		"POD_TOLERATIONS", "workload=sandbox:NoSchedule, spot, gpu:NoExecute, *", "POD_RUNTIME_CLASS",
		"gvisor", "POD_PRIORITY_CLASS", "low", "POD_IMAGE_PULL_SECRETS", "one, two",
		"POD_IMAGE_PULL_POLICY", "Always", "POD_ALLOW_PRIVILEGE_ESCALATION", "on", "POD_USER_NAMESPACE",
		"on", "POD_GRACE_SECONDS", "7", "AGENT_VOLUME_MODE", "image", "AGENT_IMAGE", "agent:9",
		"ENABLE_SANDBOX_TOOLS", "on", "SANDBOX_TOOLS_IMAGE", "tools:1", "SANDBOX_TOOLS_VOLUME_MODE",
		"image");
	AUTO_JSON struct json_object *pod = NULL;

	(void)state;
	create.disk_bytes = INT64_C(10) << 30;
	pod = make(config, &order);
	ASSERT_ALL(pod, "metadata/namespace", "boxes", "spec/nodeSelector", "", "spec/tolerations",
		"[{\"key\":\"workload\",\"operator\":\"Equal\",\"value\":\"sandbox\",\"effect\":\"NoSchedule\"},"
		"{\"key\":\"spot\",\"operator\":\"Exists\"},"
		"{\"key\":\"gpu\",\"operator\":\"Exists\",\"effect\":\"NoExecute\"},{\"operator\":\"Exists\"}]",
		"spec/runtimeClassName", "gvisor", "spec/priorityClassName", "low", "spec/imagePullSecrets",
		"[{\"name\":\"one\"},{\"name\":\"two\"}]", "spec/hostUsers", "false",
		"spec/terminationGracePeriodSeconds", "7", "spec/initContainers", "", "spec/volumes",
		"[{\"name\":\"orchard-agent\",\"image\":{\"reference\":\"agent:9\",\"pullPolicy\":\"Always\"}},"
		"{\"name\":\"sandbox-tools\",\"image\":{\"reference\":\"tools:1\",\"pullPolicy\":\"Always\"}}]",
		"spec/containers/0/imagePullPolicy", "Always", "spec/containers/0/securityContext",
		"{\"allowPrivilegeEscalation\":true}", "spec/containers/0/resources/limits/ephemeral-storage",
		"10Gi", "spec/containers/0/resources/requests/ephemeral-storage", "0",
		"spec/containers/0/volumeMounts/1",
		"{\"name\":\"sandbox-tools\",\"mountPath\":\"/opt/sandbox-tools\",\"readOnly\":true}");
	config_free(config);
}

/* The agent is there before the tools' own image runs it to copy them. */
static void
test_tools_by_an_init_container(void **state)
{
	struct pod_order order = { .create = &plain, .env = "" };
	struct config *config = PODS_CONFIG("ENABLE_SANDBOX_TOOLS", "on", "SANDBOX_TOOLS_IMAGE", "tools:1");
	AUTO_JSON struct json_object *pod = make(config, &order);

	(void)state;
	ASSERT_ALL(pod, "spec/initContainers/0/name", "orchard-agent", "spec/initContainers/1/image", "tools:1",
		"spec/initContainers/1/command",
		"[\"/opt/orchard-agent/orchard-agent\",\"--install\",\"/opt/sandbox-tools\",\"/\"]",
		"spec/initContainers/1/volumeMounts",
		"[{\"name\":\"sandbox-tools\",\"mountPath\":\"/opt/sandbox-tools\"},"
		"{\"name\":\"orchard-agent\",\"mountPath\":\"/opt/orchard-agent\",\"readOnly\":true}]");
	config_free(config);
}

static void
test_labels_or_annotations(void **state)
{
	AUTO_JSON struct json_object *fine = pods_json("{'team':'red-1','empty':''}");
	AUTO_JSON struct json_object *odd = pods_json("{'team':'red','a b':'x','note':'two words','-':'y'}");
	struct pod_order order = { .create = &plain, .env = "", .tenant = "acme", .labels = fine };
	struct config *config = PODS_CONFIG();
	AUTO_JSON struct json_object *first = make(config, &order), *second = NULL;

	(void)state;
	ASSERT_ALL(pods_at(first, "metadata"), "annotations", "");
	assert_string_equal(json_object_get_string(json_object_object_get(
				    pods_at(first, "metadata/labels"), "labels.orchard/team")),
		"red-1");
	assert_string_equal(
		json_object_get_string(json_object_object_get(pods_at(first, "metadata/labels"), "orchard/tenant")),
		"acme");
	order.labels = odd;
	order.tenant = "Acme & Sons";
	second = make(config, &order);
	assert_int_equal(json_object_object_length(pods_at(second, "metadata/labels")), 4);
	assert_string_equal(json_object_get_string(json_object_object_get(
				    pods_at(second, "metadata/annotations"), "orchard/labels")),
		json_text(odd, NULL));
	assert_string_equal(json_object_get_string(json_object_object_get(
				    pods_at(second, "metadata/annotations"), "orchard/tenant")),
		"Acme & Sons");
	config_free(config);
}

static void
test_too_much_environment_is_refused(void **state)
{
	struct spawn_create create = plain;
	struct config *config = PODS_CONFIG();
	char *env = malloc(SPAWN_ENV_MAX);
	struct pod_order order = { .create = &create, .env = env };
	struct json_object *pod = NULL;
	struct pod_spec *spec;
	struct err err;

	(void)state;
	memset(env, '\1', SPAWN_ENV_MAX - 1); /* six bytes each in JSON */
	memcpy(env, "A=", 2);
	env[SPAWN_ENV_MAX - 1] = '\0';
	create.env_len = SPAWN_ENV_MAX;
	assert_int_equal(pod_spec_create(config, &spec, &err), 0);
	assert_int_equal(pod_spec_make(spec, &order, &pod, &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	pod_spec_free(spec);
	free(env);
	config_free(config);
}

static void
test_wrong_settings_are_named(void **state)
{
	static const struct {
		const char *name, *value, *words;
	} cases[] = {
		{ "SANDBOX_NAMESPACE", "Boxes", "sandbox_namespace" },
		{ "SANDBOX_NAMESPACE", "", "sandbox_namespace" },
		{ "POD_IMAGE_PULL_POLICY", "Sometimes", "IfNotPresent" },
		{ "POD_NODE_SELECTOR", "workload", "name=value" },
		{ "POD_NODE_SELECTOR", "=x", "name=value" },
		{ "POD_NODE_SELECTOR", "a=b c", "name=value" },
		{ "POD_TOLERATIONS", "key:Never", "NoSchedule" },
		{ "POD_TOLERATIONS", "=x", "pod_tolerations" },
		{ "AGENT_VOLUME_MODE", "hostpath", "initcontainer" },
		{ "AGENT_MOUNT_PATH", "opt", "agent_mount_path" },
		{ "AGENT_MOUNT_PATH", "/", "agent_mount_path" },
		{ "AGENT_MOUNT_PATH", "/a/../b", "agent_mount_path" },
		{ "AGENT_IMAGE", "", "agent_image" },
		{ "ENABLE_SANDBOX_TOOLS", "on", "sandbox_tools_image" },
		{ "EGRESS_EXCEPT_CIDRS", "x", "egress_except_cidrs" },
		{ "POD_TEMPLATE_FILE", "/nonexistent/pod.yaml", "/nonexistent/pod.yaml" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct config *config = PODS_CONFIG(cases[i].name, cases[i].value);
		struct pod_spec *spec;
		struct err err;

		assert_int_equal(pod_spec_create(config, &spec, &err), -1);
		if (strstr(err.msg, cases[i].words) == NULL)
			fail_msg("%s=%s: %s", cases[i].name, cases[i].value, err.msg);
		config_free(config);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pod_as_it_is_by_default),
		cmocka_unit_test(test_the_agents_configuration),
		cmocka_unit_test(test_dollars_survive),
		cmocka_unit_test(test_settings_change_the_pod),
		cmocka_unit_test(test_tools_by_an_init_container),
		cmocka_unit_test(test_labels_or_annotations),
		cmocka_unit_test(test_too_much_environment_is_refused),
		cmocka_unit_test(test_wrong_settings_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
