/* pod_spec.c - the frame of a pod; its containers are made in pod_container.c. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_spec.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "conf/config.h"
#include "controller/pod_container.h"
#include "controller/pod_labels.h"
#include "controller/pod_rules.h"
#include "controller/pod_template.h"
#include "controller/pod_write.h"
#include "ipc/spawn_msg.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

struct pod_spec {
	const struct config *config;
	struct json_object *template; /* NULL: none */
};

void
pod_spec_name(const char *id, char ret_name[POD_SPEC_NAME_SIZE])
{
	snprintf(ret_name, POD_SPEC_NAME_SIZE, "sandbox-%.54s", id);
}

static void
write_pull_secrets(struct json_object *spec, const struct config *config)
{
	const struct config_list *names = &config->pod_image_pull_secrets;
	struct json_object *list;

	if (names->count == 0)
		return;
	list = pod_write_in(spec, "imagePullSecrets", pod_write_array());
	for (size_t i = 0; i < names->count; i++)
		pod_write_text(pod_write_item(list, pod_write_object()), "name", names->items[i]);
}

/* What is not said at all leaves the choice to the cluster. */
static void
write_optional(struct json_object *spec, const struct config *config)
{
	if (config->pod_node_selector.count > 0)
		pod_write_in(spec, "nodeSelector", pod_rules_labels(&config->pod_node_selector));
	if (config->pod_tolerations.count > 0)
		pod_write_in(spec, "tolerations", pod_rules_tolerations(config));
	if (config->pod_runtime_class[0] != '\0')
		pod_write_text(spec, "runtimeClassName", config->pod_runtime_class);
	if (config->pod_priority_class[0] != '\0')
		pod_write_text(spec, "priorityClassName", config->pod_priority_class);
	if (config->pod_user_namespace)
		pod_write_bool(spec, "hostUsers", false);
	write_pull_secrets(spec, config);
}

static int
make_ours(const struct config *config, const struct pod_order *order, struct json_object **ret_pod, struct err *err)
{
	AUTO_JSON struct json_object *pod = pod_write_object();
	char name[POD_SPEC_NAME_SIZE];
	struct json_object *metadata, *spec, *context;

	pod_spec_name(order->create->id, name);
	pod_write_text(pod, "apiVersion", "v1");
	pod_write_text(pod, "kind", "Pod");
	metadata = pod_write_in(pod, "metadata", pod_write_object());
	pod_write_text(metadata, "name", name);
	pod_write_text(metadata, "namespace", config->sandbox_namespace);
	pod_labels_write(metadata, order);
	spec = pod_write_in(pod, "spec", pod_write_object());
	pod_write_text(spec, "restartPolicy", "Never");
	pod_write_bool(spec, "automountServiceAccountToken", false);
	pod_write_bool(spec, "enableServiceLinks", false);
	pod_write_int(spec, "terminationGracePeriodSeconds", config->pod_grace_seconds);
	context = pod_write_in(spec, "securityContext", pod_write_object());
	pod_write_text(pod_write_in(context, "seccompProfile", pod_write_object()), "type", "RuntimeDefault");
	write_optional(spec, config);
	if (pod_container_write(spec, config, order, err) != 0)
		return -1;
	*ret_pod = STEAL_PTR(pod);
	return 0;
}

int
pod_spec_make(
	const struct pod_spec *spec, const struct pod_order *order, struct json_object **ret_pod, struct err *err)
{
	AUTO_JSON struct json_object *pod = NULL;

	if (make_ours(spec->config, order, &pod, err) != 0 ||
		(spec->template != NULL && pod_template_merge(pod, spec->template, err) != 0))
		return -1;
	*ret_pod = STEAL_PTR(pod);
	return 0;
}

bool
pod_spec_has_template(const struct pod_spec *spec)
{
	return spec->template != NULL;
}

/* A template is the same for every pod, so one pod tells whether it leaves them what they must be. */
static int
check_template(const struct pod_spec *spec, struct err *err)
{
	AUTO_FREE struct spawn_create *create = alloc_zero(1, sizeof *create);
	struct pod_order order = { .create = create, .env = "" };
	AUTO_JSON struct json_object *ours = NULL, *merged = NULL;

	*create = (struct spawn_create){
		.id = "template", .image = "template", .cpu_milli = 1000, .memory_bytes = 1 << 20
	};
	if (make_ours(spec->config, &order, &ours, err) != 0)
		return -1;
	merged = pod_write_copy(ours);
	if (pod_template_merge(merged, spec->template, err) != 0 || pod_template_check(ours, merged, err) != 0)
		return err_prefix(err, "pod_template_file %s", spec->config->pod_template_file);
	return 0;
}

int
pod_spec_create(const struct config *config, struct pod_spec **ret_spec, struct err *err)
{
	struct pod_spec *spec;

	if (pod_rules_check(config, err) != 0)
		return -1;
	spec = alloc_zero(1, sizeof *spec);
	spec->config = config;
	if (config->pod_template_file[0] != '\0' &&
		(pod_template_read(config->pod_template_file, &spec->template, err) != 0 ||
			check_template(spec, err) != 0)) {
		pod_spec_free(spec);
		return -1;
	}
	*ret_spec = spec;
	return 0;
}

void
pod_spec_free(struct pod_spec *spec)
{
	if (spec != NULL)
		json_object_put(spec->template);
	free(spec);
}
