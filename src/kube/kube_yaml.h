/* kube_yaml.h - YAML (and JSON, which is a part of it) as JSON values. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_YAML_H
#define ORCHARD_KUBE_KUBE_YAML_H

#include "base/cleanup.h"

#include <stddef.h>

struct err;
struct json_object;

enum { KUBE_YAML_MAX_BYTES = 4 << 20 };

/*
 * The one document in the text, owned by the caller (json_object_put). Plain scalars become null, true, false or
 * numbers as JSON writes them and as YAML's core schema does, everything else a string. ERR_INVALID with the line:
 * broken text, keys that are no strings or come twice, aliases, tags other than !!str, several documents, too deep.
 */
int kube_yaml_parse(const char *text, size_t len, struct json_object **ret_value, struct err *err) MUSTCHECK;

#endif
