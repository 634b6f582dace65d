/* kube_config_plugin.c - the "exec" of a kubeconfig's user: a program that prints credentials. */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_config_impl.h"
#include "kube/kube_status.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <string.h>

enum { WORDS_MAX = 256 };

static const char *const versions[] = { "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1" };

static int
list_of(struct json_object *object, const char *name, struct json_object **ret_list, size_t *ret_count,
	struct err *err)
{
	*ret_count = 0;
	if (!json_object_object_get_ex(object, name, ret_list) || *ret_list == NULL)
		return 0;
	if (!json_object_is_type(*ret_list, json_type_array) || json_object_array_length(*ret_list) > WORDS_MAX)
		return err_set(err, ERR_INVALID, "exec: %s must be a list", name);
	*ret_count = json_object_array_length(*ret_list);
	return 0;
}

static int
take_args(struct kube_plugin *plugin, struct json_object *exec, struct err *err)
{
	struct json_object *list;
	size_t count;

	if (list_of(exec, "args", &list, &count, err) != 0)
		return -1;
	plugin->args = alloc_zero(count + 1, sizeof *plugin->args);
	for (size_t i = 0; i < count; i++) {
		struct json_object *word = json_object_array_get_idx(list, i);

		if (!json_object_is_type(word, json_type_string))
			return err_set(err, ERR_INVALID, "exec: args must be texts");
		plugin->args[i] = alloc_string(json_object_get_string(word));
	}
	return 0;
}

static int
take_env(struct kube_plugin *plugin, struct json_object *exec, struct err *err)
{
	struct json_object *list;
	size_t count;

	if (list_of(exec, "env", &list, &count, err) != 0)
		return -1;
	plugin->env = alloc_zero(count + 1, sizeof *plugin->env);
	for (size_t i = 0; i < count; i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		const char *name = kube_json_text(pair, "name");

		if (name[0] == '\0' || strchr(name, '=') != NULL)
			return err_set(err, ERR_INVALID, "exec: env must be a list of names with values");
		plugin->env[i] = alloc_format("%s=%s", name, kube_json_text(pair, "value"));
	}
	return 0;
}

/* The fields of a kubeconfig's cluster under the names that a plugin knows them by. */
static struct json_object *
cluster_info(const struct kube_config *config, struct json_object *cluster)
{
	struct json_object *info = json_object_new_object(), *ca;

	json_object_object_add(info, "server", json_object_new_string(config->server));
	if (config->tls_name != NULL)
		json_object_object_add(info, "tls-server-name", json_object_new_string(config->tls_name));
	if (config->proxy != NULL)
		json_object_object_add(info, "proxy-url", json_object_new_string(config->proxy));
	if (config->insecure)
		json_object_object_add(info, "insecure-skip-tls-verify", json_object_new_boolean(true));
	if (json_object_object_get_ex(cluster, "certificate-authority-data", &ca))
		json_object_object_add(info, "certificate-authority-data", json_object_get(ca));
	return info;
}

static int
take_info(struct kube_config *config, struct json_object *exec, struct json_object *cluster, struct err *err)
{
	AUTO_JSON struct json_object *info = json_object_new_object();
	struct json_object *spec = json_object_new_object(), *wanted = NULL;

	if (json_object_object_get_ex(exec, "provideClusterInfo", &wanted) && wanted != NULL &&
		!json_object_is_type(wanted, json_type_boolean)) {
		json_object_put(spec);
		return err_set(err, ERR_INVALID, "exec: provideClusterInfo must be true or false");
	}
	json_object_object_add(info, "apiVersion", json_object_new_string(config->plugin->version));
	json_object_object_add(info, "kind", json_object_new_string("ExecCredential"));
	json_object_object_add(info, "spec", spec);
	json_object_object_add(spec, "interactive", json_object_new_boolean(false));
	if (json_object_get_boolean(wanted))
		json_object_object_add(spec, "cluster", cluster_info(config, cluster));
	config->plugin->info = alloc_format("KUBERNETES_EXEC_INFO=%s", json_text(info, NULL));
	return 0;
}

static int
take_version(struct kube_plugin *plugin, struct json_object *exec, struct err *err)
{
	const char *version = kube_json_text(exec, "apiVersion");

	if (strcmp(kube_json_text(exec, "interactiveMode"), "Always") == 0)
		return err_set(err, ERR_INVALID,
			"exec: it wants to talk with somebody (interactiveMode Always), "
			"and nobody is there");
	for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
		if (strcmp(version, versions[i]) != 0)
			continue;
		plugin->version = alloc_string(version);
		return 0;
	}
	return err_set(err, ERR_INVALID, "exec: apiVersion '%.60s' is not supported; it must be %s or v1beta1",
		version, versions[0]);
}

int
kube_config_plugin(struct kube_config *config, struct json_object *exec, const char *dir,
	struct json_object *cluster, struct err *err)
{
	struct kube_plugin *plugin = config->plugin = alloc_zero(1, sizeof *plugin);
	const char *command;

	if (!json_object_is_type(exec, json_type_object))
		return err_set(err, ERR_INVALID, "exec must be a mapping");
	command = kube_json_text(exec, "command");
	if (command[0] == '\0')
		return err_set(err, ERR_INVALID, "exec: it names no command");
	plugin->command = strchr(command, '/') != NULL ? kube_config_path(dir, command) : alloc_string(command);
	plugin->hint = alloc_string(kube_json_text(exec, "installHint"));
	if (take_version(plugin, exec, err) != 0 || take_args(plugin, exec, err) != 0 ||
		take_env(plugin, exec, err) != 0)
		return -1;
	return take_info(config, exec, cluster, err);
}
