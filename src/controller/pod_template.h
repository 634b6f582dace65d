/*
 * pod_template.h - the operator's own pod, merged over the one we make.
 *
 * As kubectl patches do it: objects member by member, null takes a member away, containers, env, volumes and the like
 * element by element by their name, tolerations and the rest of such lists at the end; any other list as a whole.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_TEMPLATE_H
#define ORCHARD_CONTROLLER_POD_TEMPLATE_H

#include "base/cleanup.h"

struct err;
struct json_object;

/* Reads a file of YAML or JSON; *ret_template is owned by the caller. The error names the file, and the line if it can. */
int pod_template_read(const char *path, struct json_object **ret_template, struct err *err) MUSTCHECK;

/* pod is changed in place; after an error it must not be used. */
int pod_template_merge(struct json_object *pod, struct json_object *template, struct err *err) MUSTCHECK;

/* Is merged still a sandbox as ours was? ERR_INVALID names what must not be changed. */
int pod_template_check(struct json_object *ours, struct json_object *merged, struct err *err) MUSTCHECK;

#endif
