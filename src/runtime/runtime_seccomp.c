/* runtime_seccomp.c - the rules of conf/wall_rules.h as the specification writes them. */
/* SPDX-License-Identifier: MIT */
#include "runtime/runtime_bundle.h"

#include "conf/config.h"
#include "conf/wall_rules.h"

#include <json-c/json.h>

static const char *const compares[] = {
	[WALL_EQ] = "SCMP_CMP_EQ",
	[WALL_NE] = "SCMP_CMP_NE",
	[WALL_GT] = "SCMP_CMP_GT",
	[WALL_MASKED_EQ] = "SCMP_CMP_MASKED_EQ",
};

/* Programs of any other are killed. "": let the runtime choose. */
static const char *
architecture(void)
{
#if defined(__x86_64__)
	return "SCMP_ARCH_X86_64";
#elif defined(__aarch64__)
	return "SCMP_ARCH_AARCH64";
#else
	return "";
#endif
}

static struct json_object *
condition_json(const struct wall_condition *when)
{
	struct json_object *object = json_object_new_object();
	bool masked = when->compare == WALL_MASKED_EQ;

	json_object_object_add(object, "index", json_object_new_int64(when->arg));
	json_object_object_add(object, "value", json_object_new_uint64(masked ? when->mask : when->value));
	json_object_object_add(object, "valueTwo", json_object_new_uint64(masked ? when->value : 0));
	json_object_object_add(object, "op", json_object_new_string(compares[when->compare]));
	return object;
}

static int
add_rule(const struct wall_rule *rule, void *arg)
{
	struct json_object *object = json_object_new_object(), *names = json_object_new_array();
	struct json_object *args = json_object_new_array();

	json_object_array_add(names, json_object_new_string(rule->call));
	for (unsigned i = 0; i < rule->count; i++)
		json_object_array_add(args, condition_json(&rule->when[i]));
	json_object_object_add(object, "names", names);
	json_object_object_add(object, "action", json_object_new_string("SCMP_ACT_ERRNO"));
	json_object_object_add(object, "errnoRet", json_object_new_int(rule->answer));
	json_object_object_add(object, "args", args);
	return json_object_array_add(arg, object);
}

struct json_object *
runtime_seccomp_json(const struct config *config)
{
	struct json_object *object, *calls, *machines;

	if (!config->sandbox_seccomp)
		return NULL;
	object = json_object_new_object();
	calls = json_object_new_array();
	machines = json_object_new_array();
	if (wall_rules_each(config, add_rule, calls) != 0)
		abort();
	if (architecture()[0] != '\0')
		json_object_array_add(machines, json_object_new_string(architecture()));
	json_object_object_add(object, "defaultAction", json_object_new_string("SCMP_ACT_ALLOW"));
	json_object_object_add(object, "architectures", machines);
	json_object_object_add(object, "syscalls", calls);
	return object;
}
