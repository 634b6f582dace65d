/* pod_labels.h - what a sandbox is called and labelled, as labels where Kubernetes takes them, as annotations where not. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_LABELS_H
#define ORCHARD_CONTROLLER_POD_LABELS_H

#include <stdbool.h>

struct json_object;
struct pod_order;

/* At most 63 of A-Z a-z 0-9 - _ . with a letter or digit at both ends; a value may be empty. */
bool pod_labels_is_value(const char *text);

/* Adds "labels" and, where needed, "annotations" to the metadata of a pod. */
void pod_labels_write(struct json_object *metadata, const struct pod_order *order);

#endif
