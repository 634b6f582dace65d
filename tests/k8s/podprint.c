/*
 * podprint.c - prints a pod, or a policy, as the server makes it of the settings in its environment; compares policies.
 *
 * usage: podprint pod | default | allow POD_UID | equal STANDING WANTED (files; exit status 0: they mean the same)
 */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/file.h"
#include "base/ip_dest.h"
#include "base/json.h"
#include "conf/config.h"
#include "controller/pod_policy.h"
#include "controller/pod_spec.h"
#include "ipc/spawn_msg.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static const char env[] = "PLAIN=1\0DOLLARS=$(PLAIN) $$ \"quoted\"";

static struct spawn_create create = {
	.id = "a1",
	.uid = "11111111-2222-3333-4444-555555555555",
	.token = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	.image = "python:3.11",
	.working_dir = "/work",
	.cpu_milli = 1500,
	.memory_bytes = INT64_C(1) << 30,
	.disk_bytes = INT64_C(10) << 30,
	.env_len = sizeof env,
};

static struct json_object *
print_pod(const struct config *config, struct err *err)
{
	AUTO_JSON struct json_object *labels = json_object_new_object();
	struct pod_order order = { .create = &create, .env = env, .tenant = "acme & sons", .labels = labels };
	struct json_object *pod = NULL;
	struct pod_spec *spec;

	json_object_object_add(labels, "team", json_object_new_string("red"));
	json_object_object_add(labels, "note to all", json_object_new_string("two words"));
	if (pod_spec_create(config, &spec, err) != 0)
		return NULL;
	if (pod_spec_make(spec, &order, &pod, err) != 0)
		pod = NULL;
	pod_spec_free(spec);
	return pod;
}

static struct json_object *
read_json(const char *path)
{
	AUTO_FREE char *text = NULL;
	struct json_object *value = NULL;
	struct err err;
	size_t len;

	if (file_read_at(AT_FDCWD, path, 1 << 20, &text, &len, &err) == 0)
		value = json_parse(text, len, &err);
	if (value == NULL)
		fprintf(stderr, "%s: %s\n", path, err.msg);
	return value;
}

static int
compare(const char *standing, const char *wanted)
{
	AUTO_JSON struct json_object *a = read_json(standing), *b = read_json(wanted);

	return a == NULL || b == NULL || !pod_policy_equal(a, b);
}

/* LIMITED in the environment: only to these, separated by blanks. */
static struct json_object *
print_allow(const struct config *config, const char *pod_uid, struct err *err)
{
	char *rest = getenv("LIMITED"), *text;

	create.egress.limited = rest != NULL;
	while (rest != NULL && (text = strtok_r(rest, " ", &rest)) != NULL) {
		if (create.egress.count == EGRESS_MAX ||
			ip_dest_parse(text, &create.egress.allow[create.egress.count++], err) != 0)
			return NULL;
	}
	return pod_policy_allow(config, &create, pod_uid);
}

int
main(int argc, char **argv)
{
	AUTO_JSON struct json_object *made = NULL;
	struct config *config;
	struct err err = { 0 };

	if (argc == 4 && strcmp(argv[1], "equal") == 0)
		return compare(argv[2], argv[3]);
	if (config_load(NULL, &config, &err) == 0) {
		if (argc == 2 && strcmp(argv[1], "pod") == 0)
			made = print_pod(config, &err);
		else if (argc == 2 && strcmp(argv[1], "default") == 0)
			made = pod_policy_default(config, "orchard");
		else if (argc == 3 && strcmp(argv[1], "allow") == 0)
			made = print_allow(config, argv[2], &err);
		config_free(config);
	}
	if (made == NULL) {
		fprintf(stderr, "podprint: %s\n", err.msg);
		return 2;
	}
	puts(json_text(made, NULL));
	return 0;
}
