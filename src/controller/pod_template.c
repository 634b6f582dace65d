/* pod_template.c - a merge by Kubernetes' rules for patches, without their directives. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_template.h"

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "controller/pod_read.h"
#include "controller/pod_write.h"
#include "kube/kube_yaml.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <string.h>

enum { TEMPLATE_MAX = 1 << 20 };

/* Lists whose elements have a name; key NULL: elements are only added. */
static const struct {
	const char *list, *key;
} keyed_lists[] = {
	{ "containers", "name" },
	{ "initContainers", "name" },
	{ "volumes", "name" },
	{ "env", "name" },
	{ "volumeMounts", "mountPath" },
	{ "volumeDevices", "devicePath" },
	{ "ports", "containerPort" },
	{ "imagePullSecrets", "name" },
	{ "hostAliases", "ip" },
	{ "topologySpreadConstraints", "topologyKey" },
	{ "resourceClaims", "name" },
	{ "tolerations", NULL },
	{ "envFrom", NULL },
};

/* What makes a pod a sandbox of ours; "member=text" stands for the element of a list that has it. */
static const char *const guarded[] = {
	"apiVersion",
	"kind",
	"metadata/name",
	"metadata/namespace",
	"metadata/labels/app",
	"metadata/labels/sandbox-id",
	"metadata/labels/sandbox-uid",
	"spec/restartPolicy",
	"spec/hostNetwork",
	"spec/hostPID",
	"spec/hostIPC",
	"spec/shareProcessNamespace",
	"spec/containers/name=sandbox/image",
	"spec/containers/name=sandbox/command",
	"spec/containers/name=sandbox/args",
	"spec/containers/name=sandbox/restartPolicy",
	"spec/containers/name=sandbox/restartPolicyRules",
	"spec/containers/name=sandbox/env/name=ORCHARD_AGENT_CONFIG",
	"spec/containers/name=sandbox/volumeMounts/name=orchard-agent",
	"spec/initContainers/name=orchard-agent/image",
	"spec/initContainers/name=orchard-agent/command",
	"spec/initContainers/name=orchard-agent/volumeMounts/name=orchard-agent",
	"spec/volumes/name=orchard-agent",
};

/* What a template may say; NULL ends it. The rest would be misspelt, or is the API server's to say. */
static const char *const members[] = { "apiVersion", "kind", "metadata", "spec", NULL };
static const char *const metadata_members[] = { "name", "namespace", "labels", "annotations", NULL };

static int
check_members(struct json_object *object, const char *const *allowed, const char *where, struct err *err)
{
	if (!json_object_is_type(object, json_type_object))
		return 0;
	json_object_object_foreach(object, name, value)
	{
		const char *const *one = allowed;

		(void)value;
		while (*one != NULL && strcmp(*one, name) != 0)
			one++;
		if (*one == NULL)
			return err_set(err, ERR_INVALID, "%s%.60s has no place in it", where, name);
	}
	return 0;
}

int
pod_template_read(const char *path, struct json_object **ret_template, struct err *err)
{
	AUTO_JSON struct json_object *template = NULL;
	AUTO_FREE char *text = NULL;
	size_t len;

	if (file_read_at(AT_FDCWD, path, TEMPLATE_MAX, &text, &len, err) != 0 ||
		kube_yaml_parse(text, len, &template, err) != 0)
		return err_prefix(err, "pod_template_file %s", path);
	if (!json_object_is_type(template, json_type_object))
		return err_set(
			err, ERR_INVALID, "pod_template_file %s: must be a pod, with metadata or spec in it", path);
	if (check_members(template, members, "", err) != 0 ||
		check_members(pod_read_object(template, "metadata"), metadata_members, "metadata/", err) != 0)
		return err_prefix(err, "pod_template_file %s", path);
	*ret_template = STEAL_PTR(template);
	return 0;
}

/* Where the element goes that has the same key; the length: nowhere yet. */
static size_t
keyed_find(struct json_object *list, const char *key, struct json_object *value)
{
	size_t count = json_object_array_length(list), i = 0;

	while (i < count &&
		!json_object_equal(json_object_object_get(json_object_array_get_idx(list, i), key), value))
		i++;
	return i;
}

static int merge_object(struct json_object *target, struct json_object *patch, struct err *err);

static int
merge_keyed(
	struct json_object *target, struct json_object *patch, const char *list, const char *key, struct err *err)
{
	for (size_t i = 0; i < json_object_array_length(patch); i++) {
		struct json_object *item = json_object_array_get_idx(patch, i), *value = NULL;
		size_t at;

		if (!json_object_is_type(item, json_type_object) ||
			(key != NULL && !json_object_object_get_ex(item, key, &value)))
			return err_set(err, ERR_INVALID, "each element of %s must be an object with %s", list,
				key != NULL ? key : "members");
		at = key == NULL ? json_object_array_length(target) : keyed_find(target, key, value);
		if (at == json_object_array_length(target))
			pod_write_item(target, pod_write_object());
		if (merge_object(json_object_array_get_idx(target, at), item, err) != 0)
			return err_prefix(err, "%s", list);
	}
	return 0;
}

/* Is it one of the lists that are merged? *ret_key: by what. */
static bool
is_keyed(const char *name, const char **ret_key)
{
	for (size_t i = 0; i < sizeof keyed_lists / sizeof keyed_lists[0]; i++)
		if (strcmp(keyed_lists[i].list, name) == 0) {
			*ret_key = keyed_lists[i].key;
			return true;
		}
	return false;
}

static int
merge_member(struct json_object *target, const char *name, struct json_object *value, struct err *err)
{
	struct json_object *mine = json_object_object_get(target, name);
	const char *key = NULL;

	if (name[0] == '$')
		return err_set(err, ERR_INVALID, "%.60s: directives of patches are not taken", name);
	if (value == NULL) {
		json_object_object_del(target, name);
		return 0;
	}
	if (json_object_is_type(value, json_type_object)) {
		if (!json_object_is_type(mine, json_type_object))
			mine = pod_write_in(target, name, pod_write_object());
		return merge_object(mine, value, err);
	}
	if (json_object_is_type(value, json_type_array) && is_keyed(name, &key)) {
		if (!json_object_is_type(mine, json_type_array))
			mine = pod_write_in(target, name, pod_write_array());
		return merge_keyed(mine, value, name, key, err);
	}
	pod_write_in(target, name, pod_write_copy(value));
	return 0;
}

static int
merge_object(struct json_object *target, struct json_object *patch, struct err *err)
{
	json_object_object_foreach(patch, name, value)
	{
		if (merge_member(target, name, value, err) != 0)
			return -1;
	}
	return 0;
}

int
pod_template_merge(struct json_object *pod, struct json_object *template, struct err *err)
{
	return merge_object(pod, template, err);
}

/* NULL: there is none. */
static struct json_object *
at_path(struct json_object *value, const char *path)
{
	char step[64];

	while (value != NULL && *path != '\0') {
		size_t len = strcspn(path, "/");
		char *equals;

		if (len >= sizeof step)
			return NULL;
		memcpy(step, path, len);
		step[len] = '\0';
		path += len + (path[len] == '/');
		equals = strchr(step, '=');
		if (equals == NULL) {
			if (!json_object_is_type(value, json_type_object))
				return NULL;
			value = json_object_object_get(value, step);
			continue;
		}
		*equals = '\0';
		if (!json_object_is_type(value, json_type_array))
			return NULL;
		value = pod_read_find(value, step, equals + 1);
	}
	return value;
}

/* What is not there and a switch that is off are the same. */
static bool
is_same(struct json_object *a, struct json_object *b)
{
	if (a == NULL && json_object_is_type(b, json_type_boolean))
		return !json_object_get_boolean(b);
	return json_object_equal(a, b);
}

int
pod_template_check(struct json_object *ours, struct json_object *merged, struct err *err)
{
	for (size_t i = 0; i < sizeof guarded / sizeof guarded[0]; i++)
		if (!is_same(at_path(ours, guarded[i]), at_path(merged, guarded[i])))
			return err_set(
				err, ERR_INVALID, "%s must not be changed: the sandbox would not work", guarded[i]);
	return 0;
}
