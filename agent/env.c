/* env.c - a small ordered set of NAME=value. */
/* SPDX-License-Identifier: MIT */
#include "agent/env.h"

#include "base/alloc.h"
#include "agent/user.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

void
env_init(struct env *env)
{
	*env = (struct env){ .size = 32 };
	env->list = alloc_zero(env->size, sizeof *env->list);
}

void
env_fini(struct env *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->list[i]);
	free(env->list);
	*env = (struct env){ 0 };
}

static char **
env_find(const struct env *env, const char *name, size_t len)
{
	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->list[i], name, len) == 0 && env->list[i][len] == '=')
			return &env->list[i];
	return NULL;
}

static void
env_put(struct env *env, char *text)
{
	size_t len = strcspn(text, "=");
	char **place = env_find(env, text, len);

	if (place != NULL) {
		free(*place);
		*place = text;
		return;
	}
	if (env->count + 1 >= env->size) {
		env->size *= 2;
		env->list = alloc_resize(env->list, env->size * sizeof *env->list);
	}
	env->list[env->count++] = text;
	env->list[env->count] = NULL;
}

void
env_set(struct env *env, const char *name, const char *value)
{
	env_put(env, alloc_format("%s=%s", name, value));
}

void
env_set_text(struct env *env, const char *text)
{
	env_put(env, alloc_string(text));
}

const char *
env_get(const struct env *env, const char *name)
{
	size_t len = strlen(name);
	char **place = env_find(env, name, len);

	return place == NULL ? NULL : *place + len + 1;
}

static void
env_default(struct env *env, const char *name, const char *value)
{
	if (env_get(env, name) == NULL)
		env_set(env, name, value);
}

void
env_build(struct env *env, char *const *base, struct json_object *map, const struct user *user)
{
	for (; base != NULL && *base != NULL; base++)
		env_set_text(env, *base);
	if (map != NULL) {
		json_object_object_foreach(map, name, value) env_set(env, name, json_object_get_string(value));
	}
	env_default(env, "HOME", user->home);
	if (user->name[0] != '\0') {
		env_default(env, "USER", user->name);
		env_default(env, "LOGNAME", user->name);
	}
	env_default(env, "SHELL", user->shell);
	env_default(env, "PATH", ENV_DEFAULT_PATH);
}

bool
env_is_name(const char *name, size_t len)
{
	return len > 0 && memchr(name, '=', len) == NULL && memchr(name, '\0', len) == NULL;
}
