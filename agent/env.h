/* env.h - the environment of a command: the image's and sandbox's, the request's, then defaults. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_ENV_H
#define ORCHARD_AGENT_ENV_H

#include <stdbool.h>
#include <stddef.h>

struct json_object;
struct user;

#define ENV_DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct env {
	char **list; /* NAME=value, NULL at the end */
	size_t count, size;
};

void env_init(struct env *env);
void env_fini(struct env *env);
/* What is set later wins and keeps the place of the first. */
void env_set(struct env *env, const char *name, const char *value);
/* text is NAME=value. */
void env_set_text(struct env *env, const char *text);
const char *env_get(const struct env *env, const char *name); /* NULL: unset */
/* base (NULL-terminated NAME=value) and map, then HOME, USER, LOGNAME, SHELL, PATH where unset. */
void env_build(struct env *env, char *const *base, struct json_object *map, const struct user *user);
/* Not empty, neither '=' nor NUL in it. */
bool env_is_name(const char *name, size_t len);

#endif
