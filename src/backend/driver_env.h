/* driver_env.h - a JSON string map as NUL-terminated "NAME=value" strings, one behind the other. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_DRIVER_ENV_H
#define ORCHARD_BACKEND_DRIVER_ENV_H

#include <stddef.h>

struct json_object;

/* Bytes that driver_env_write needs; env may be NULL. */
size_t driver_env_size(struct json_object *env);
void driver_env_write(struct json_object *env, char *out);

#endif
