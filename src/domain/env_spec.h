/* env_spec.h - a map of environment variables as a request gives it. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_ENV_SPEC_H
#define ORCHARD_DOMAIN_ENV_SPEC_H

#include <stddef.h>

struct json_object;
struct json_reader;

/*
 * Reads `field`: names without '=' and NUL and not empty, values without NUL, at most max bytes in all as
 * "NAME=value" strings. *ret_env is NULL when it is absent, empty or wrong (then with a fault).
 */
void env_spec_read(struct json_reader *reader, const char *field, size_t max, struct json_object **ret_env);

#endif
