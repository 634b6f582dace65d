/*
 * pod_container.c - the agent as the one program of the sandbox's container.
 *
 * The sandbox's environment travels inside the agent's configuration and not as the container's: there it would be
 * expanded by Kubernetes' own rules, and would be the agent's as well as the commands'.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_container.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "base/quantity.h"
#include "base/text.h"
#include "conf/config.h"
#include "controller/pod_spec.h"
#include "controller/pod_write.h"
#include "ipc/spawn_msg.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define AGENT_VOLUME  "orchard-agent"
#define AGENT_PROGRAM "orchard-agent"
#define TOOLS_VOLUME  "sandbox-tools"
#define AGENT_CONFIG  "ORCHARD_AGENT_CONFIG"

/* The kernel passes at most 128 KiB in one variable. */
enum { CONFIG_TEXT_MAX = 120 * 1024 };

/* What comes into the pod from an image of ours. */
struct supply {
	const char *volume, *image, *mount_path;
	bool by_init; /* copied by an init container into a directory of the pod; else mounted */
};

static struct supply
agent_supply(const struct config *config)
{
	return (struct supply){ .volume = AGENT_VOLUME,
		.image = config->agent_image,
		.mount_path = config->agent_mount_path,
		.by_init = strcmp(config->agent_volume_mode, "initcontainer") == 0 };
}

static struct supply
tools_supply(const struct config *config)
{
	return (struct supply){ .volume = TOOLS_VOLUME,
		.image = config->sandbox_tools_image,
		.mount_path = config->sandbox_tools_mount_path,
		.by_init = strcmp(config->sandbox_tools_volume_mode, "initcontainer") == 0 };
}

static void
write_volume(struct json_object *volumes, const struct config *config, const struct supply *supply)
{
	struct json_object *volume = pod_write_item(volumes, pod_write_object()), *source;

	pod_write_text(volume, "name", supply->volume);
	source = pod_write_in(volume, supply->by_init ? "emptyDir" : "image", pod_write_object());
	if (supply->by_init)
		return;
	pod_write_text(source, "reference", supply->image);
	pod_write_text(source, "pullPolicy", config->pod_image_pull_policy);
}

static void
write_mount(struct json_object *container, const struct supply *supply, bool read_only)
{
	struct json_object *mounts = json_object_object_get(container, "volumeMounts");
	struct json_object *mount;

	if (mounts == NULL)
		mounts = pod_write_in(container, "volumeMounts", pod_write_array());
	mount = pod_write_item(mounts, pod_write_object());
	pod_write_text(mount, "name", supply->volume);
	pod_write_text(mount, "mountPath", supply->mount_path);
	if (read_only)
		pod_write_bool(mount, "readOnly", true);
}

/* Requests are the limits. Disk is a limit alone: nodes do not set it aside. */
static void
write_resources(struct json_object *container, const struct spawn_create *create)
{
	struct json_object *resources = pod_write_in(container, "resources", pod_write_object());
	struct json_object *limits = pod_write_in(resources, "limits", pod_write_object()), *requests;
	char text[QUANTITY_TEXT_SIZE];

	quantity_cpu_text(create->cpu_milli, text);
	pod_write_text(limits, "cpu", text);
	quantity_memory_text(create->memory_bytes, text);
	pod_write_text(limits, "memory", text);
	requests = pod_write_in(resources, "requests", pod_write_copy(limits));
	if (create->disk_bytes <= 0)
		return;
	quantity_memory_text(create->disk_bytes, text);
	pod_write_text(limits, "ephemeral-storage", text);
	pod_write_text(requests, "ephemeral-storage", "0");
}

static struct json_object *
write_container(struct json_object *containers, const char *name, const char *image, const struct config *config)
{
	struct json_object *container = pod_write_item(containers, pod_write_object());

	pod_write_text(container, "name", name);
	pod_write_text(container, "image", image);
	pod_write_text(container, "imagePullPolicy", config->pod_image_pull_policy);
	pod_write_text(
		container, "terminationMessagePolicy", "FallbackToLogsOnError"); /* its own words on why it ended */
	return container;
}

/* It has the resources of the sandbox, which cost nothing more: one runs before the other. */
static struct json_object *
write_init(struct json_object *containers, const struct config *config, const struct supply *supply,
	const struct spawn_create *create)
{
	struct json_object *container = write_container(containers, supply->volume, supply->image, config);
	struct json_object *context = pod_write_in(container, "securityContext", pod_write_object());

	pod_write_bool(context, "allowPrivilegeEscalation", false);
	pod_write_bool(context, "readOnlyRootFilesystem", true);
	pod_write_item_text(
		pod_write_in(pod_write_in(context, "capabilities", pod_write_object()), "drop", pod_write_array()),
		"ALL");
	write_resources(container, create);
	write_mount(container, supply, false);
	return pod_write_in(container, "command", pod_write_array());
}

static void
write_inits(struct json_object *spec, const struct config *config, const struct spawn_create *create)
{
	struct supply agent = agent_supply(config), tools = tools_supply(config);
	struct json_object *inits = pod_write_array(), *command;
	AUTO_FREE char *installed = alloc_format("%s/%s", agent.mount_path, AGENT_PROGRAM);

	if (agent.by_init) {
		command = write_init(inits, config, &agent, create);
		pod_write_item_text(command, "/" AGENT_PROGRAM);
		pod_write_item_text(command, "--install");
		pod_write_item_text(command, agent.mount_path);
	}
	if (config->enable_sandbox_tools && tools.by_init) {
		command = write_init(inits, config, &tools, create);
		pod_write_item_text(command, installed);
		pod_write_item_text(command, "--install");
		pod_write_item_text(command, tools.mount_path);
		pod_write_item_text(command, "/");
		write_mount(json_object_array_get_idx(inits, json_object_array_length(inits) - 1), &agent, true);
	}
	if (json_object_array_length(inits) > 0)
		pod_write_in(spec, "initContainers", inits);
	else
		json_object_put(inits);
}

static struct json_object *
agent_env(const struct pod_order *order)
{
	struct json_object *env = pod_write_array();

	for (size_t at = 0; at < order->create->env_len; at += strlen(order->env + at) + 1)
		pod_write_item_text(env, order->env + at);
	return env;
}

/* Kubernetes would take "$(NAME)" and "$$" in a variable for something of its own; a JSON string can say it otherwise. */
static char *
without_dollars(const char *text)
{
	static const char escape[] = "\\u0024";
	size_t dollars = 0;
	char *made, *to;

	for (const char *p = text; *p != '\0'; p++)
		dollars += *p == '$';
	made = to = alloc_bytes(strlen(text) + dollars * (sizeof escape - 2) + 1);
	for (; *text != '\0'; text++) {
		if (*text == '$')
			to = stpcpy(to, escape);
		else
			*to++ = *text;
	}
	*to = '\0';
	return made;
}

/* The configuration of docs/agent-protocol.md, as text in the container's environment. */
static int
write_agent_config(
	struct json_object *container, const struct config *config, const struct pod_order *order, struct err *err)
{
	AUTO_JSON struct json_object *made = pod_write_object();
	const struct spawn_create *create = order->create;
	char hex[TEXT_SHA256_HEX_SIZE], listen[32];
	AUTO_FREE char *text = NULL;
	struct json_object *variable;

	text_sha256_hex(create->token, strlen(create->token), hex);
	snprintf(listen, sizeof listen, "tcp:[::]:%d", POD_SPEC_PORT);
	pod_write_text(made, "sandbox_id", create->id);
	pod_write_text(made, "sandbox_uid", create->uid);
	pod_write_text(made, "token_sha256", hex);
	pod_write_text(made, "listen", listen);
	pod_write_in(made, "env", agent_env(order));
	pod_write_text(made, "working_dir", create->working_dir);
	pod_write_int(made, "memory_bytes", create->memory_bytes);
	if (config->enable_sandbox_tools) {
		AUTO_FREE char *bin = alloc_format("%s/bin", config->sandbox_tools_mount_path);

		pod_write_text(made, "path_append", bin);
	}
	text = without_dollars(json_text(made, NULL));
	if (strlen(text) > CONFIG_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE, "env: a pod cannot carry so much; at most about %d KiB in all",
			CONFIG_TEXT_MAX / 1024);
	variable = pod_write_item(pod_write_in(container, "env", pod_write_array()), pod_write_object());
	pod_write_text(variable, "name", AGENT_CONFIG);
	pod_write_text(variable, "value", text);
	return 0;
}

static void
write_port(struct json_object *container)
{
	struct json_object *ports = pod_write_in(container, "ports", pod_write_array());
	struct json_object *port = pod_write_item(ports, pod_write_object());

	pod_write_text(port, "name", "agent");
	pod_write_int(port, "containerPort", POD_SPEC_PORT);
	pod_write_text(port, "protocol", "TCP");
}

int
pod_container_write(
	struct json_object *spec, const struct config *config, const struct pod_order *order, struct err *err)
{
	struct supply agent = agent_supply(config), tools = tools_supply(config);
	struct json_object *containers = pod_write_in(spec, "containers", pod_write_array());
	struct json_object *volumes = pod_write_in(spec, "volumes", pod_write_array());
	struct json_object *container = write_container(
		containers, POD_SPEC_CONTAINER, order->create->image, config);
	AUTO_FREE char *program = alloc_format("%s/%s", agent.mount_path, AGENT_PROGRAM);

	pod_write_item_text(pod_write_in(container, "command", pod_write_array()), program);
	if (write_agent_config(container, config, order, err) != 0)
		return -1;
	write_resources(container, order->create);
	write_port(container);
	pod_write_bool(pod_write_in(container, "securityContext", pod_write_object()), "allowPrivilegeEscalation",
		config->pod_allow_privilege_escalation);
	write_mount(container, &agent, true);
	write_volume(volumes, config, &agent);
	if (config->enable_sandbox_tools) {
		write_mount(container, &tools, true);
		write_volume(volumes, config, &tools);
	}
	write_inits(spec, config, order->create);
	return 0;
}
