/* pod_rules.c - each setting is checked before the first pod, not by the API server at each of them. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_rules.h"

#include "base/alloc.h"
#include "base/err.h"
#include "conf/config.h"
#include "controller/pod_labels.h"
#include "controller/pod_policy.h"
#include "controller/pod_write.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <string.h>

enum { NAMESPACE_MAX = 63 };

static bool
is_one_of(const char *text, const char *const *words)
{
	while (*words != NULL && strcmp(*words, text) != 0)
		words++;
	return *words != NULL;
}

static bool
is_dns_label(const char *text)
{
	size_t len = strlen(text);

	return len > 0 && len <= NAMESPACE_MAX && text[0] != '-' && text[len - 1] != '-' &&
		strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* Absolute, below the root, and nothing that mounts or PATH would take apart. */
static bool
is_mount_path(const char *path)
{
	return path[0] == '/' && path[1] != '\0' && path[1] != '/' && strchr(path, ':') == NULL &&
		strstr(path, "..") == NULL && strstr(path, "//") == NULL && path[strlen(path) - 1] != '/';
}

/* Is one the other, or below it? */
static bool
is_nested(const char *a, const char *b)
{
	size_t len = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	return strncmp(a, b, len) == 0 && (a[len] == '\0' || a[len] == '/') && (b[len] == '\0' || b[len] == '/');
}

static int
check_mounts(const struct config *config, struct err *err)
{
	static const char *const modes[] = { "image", "initcontainer", NULL };

	if (!is_one_of(config->agent_volume_mode, modes))
		return err_set(err, ERR_INVALID, "agent_volume_mode: '%.60s' is none of image, initcontainer",
			config->agent_volume_mode);
	if (!is_mount_path(config->agent_mount_path))
		return err_set(err, ERR_INVALID,
			"agent_mount_path: '%.100s' must be an absolute path without ':' and '..'",
			config->agent_mount_path);
	if (config->agent_image[0] == '\0')
		return err_set(err, ERR_INVALID, "agent_image is empty; name the image that has the agent");
	if (!config->enable_sandbox_tools)
		return 0;
	if (!is_one_of(config->sandbox_tools_volume_mode, modes))
		return err_set(err, ERR_INVALID,
			"sandbox_tools_volume_mode: '%.60s' is none of image, initcontainer",
			config->sandbox_tools_volume_mode);
	if (!is_mount_path(config->sandbox_tools_mount_path) ||
		is_nested(config->agent_mount_path, config->sandbox_tools_mount_path))
		return err_set(err, ERR_INVALID,
			"sandbox_tools_mount_path: '%.100s' must be an absolute path without ':' and '..', "
			"apart from agent_mount_path",
			config->sandbox_tools_mount_path);
	if (config->sandbox_tools_image[0] == '\0')
		return err_set(err, ERR_INVALID,
			"sandbox_tools_image is empty; name the image, or switch enable_sandbox_tools off");
	return 0;
}

/* "name=value"; name may have a prefix up to a slash. */
int
pod_rules_check_labels(const char *setting, const struct config_list *list, struct err *err)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *equals = strchr(list->items[i], '=');

		if (equals == NULL || equals == list->items[i] || !pod_labels_is_value(equals + 1))
			return err_set(
				err, ERR_INVALID, "%s: \"%.100s\" must be name=value", setting, list->items[i]);
	}
	return 0;
}

struct toleration {
	char *key, *value, *effect; /* NULL: any */
};

/* Takes text apart in place: key[=value][:effect]. */
static struct toleration
split_toleration(char *text)
{
	struct toleration made = { .key = text };

	made.effect = strrchr(text, ':');
	if (made.effect != NULL)
		*made.effect++ = '\0';
	made.value = strchr(text, '=');
	if (made.value != NULL)
		*made.value++ = '\0';
	if (strcmp(text, "*") == 0)
		made.key = NULL;
	return made;
}

static int
check_tolerations(const struct config *config, struct err *err)
{
	static const char *const effects[] = { "NoSchedule", "PreferNoSchedule", "NoExecute", NULL };

	for (size_t i = 0; i < config->pod_tolerations.count; i++) {
		AUTO_FREE char *text = alloc_string(config->pod_tolerations.items[i]);
		struct toleration one = split_toleration(text);

		if ((one.key != NULL && one.key[0] == '\0') || (one.key == NULL && one.value != NULL) ||
			(one.effect != NULL && !is_one_of(one.effect, effects)))
			return err_set(err, ERR_INVALID,
				"pod_tolerations: \"%.100s\" must be key, key=value or *, with :NoSchedule, "
				":PreferNoSchedule or :NoExecute if wanted",
				config->pod_tolerations.items[i]);
	}
	return 0;
}

int
pod_rules_check(const struct config *config, struct err *err)
{
	static const char *const pulls[] = { "Always", "IfNotPresent", "Never", NULL };

	if (!is_dns_label(config->sandbox_namespace))
		return err_set(err, ERR_INVALID, "sandbox_namespace: '%.100s' is no name of a namespace",
			config->sandbox_namespace);
	if (!is_one_of(config->pod_image_pull_policy, pulls))
		return err_set(err, ERR_INVALID,
			"pod_image_pull_policy: '%.60s' is none of Always, IfNotPresent, Never",
			config->pod_image_pull_policy);
	if (check_mounts(config, err) != 0 || check_tolerations(config, err) != 0 ||
		pod_rules_check_labels("pod_node_selector", &config->pod_node_selector, err) != 0)
		return -1;
	return pod_policy_check(config, err);
}

struct json_object *
pod_rules_labels(const struct config_list *list)
{
	struct json_object *made = pod_write_object();

	for (size_t i = 0; i < list->count; i++) {
		AUTO_FREE char *name = alloc_string(list->items[i]);
		char *equals = strchr(name, '=');

		*equals = '\0';
		pod_write_text(made, name, equals + 1);
	}
	return made;
}

struct json_object *
pod_rules_tolerations(const struct config *config)
{
	struct json_object *made = pod_write_array();

	for (size_t i = 0; i < config->pod_tolerations.count; i++) {
		AUTO_FREE char *text = alloc_string(config->pod_tolerations.items[i]);
		struct toleration one = split_toleration(text);
		struct json_object *item = pod_write_item(made, pod_write_object());

		if (one.key != NULL)
			pod_write_text(item, "key", one.key);
		pod_write_text(item, "operator", one.value == NULL ? "Exists" : "Equal");
		if (one.value != NULL)
			pod_write_text(item, "value", one.value);
		if (one.effect != NULL)
			pod_write_text(item, "effect", one.effect);
	}
	return made;
}
