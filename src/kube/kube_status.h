/* kube_status.h - what an answer says when it is not what was asked for. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_STATUS_H
#define ORCHARD_KUBE_KUBE_STATUS_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct json_object;

/* JSON of the API server: any number of values. NULL: it is none. */
struct json_object *kube_json_parse(const char *text, size_t len) MUSTCHECK;
/* A text in the object, or "". */
const char *kube_json_text(struct json_object *object, const char *name);
/* The object in the object, or NULL. */
struct json_object *kube_json_object(struct json_object *object, const char *name);

/* Fills *err from an HTTP status and a body (NULL: none), a Status if it comes from the API server itself. Returns -1. */
int kube_status_err(int http_status, struct json_object *body, struct err *err);
/* Status.reason, or "". */
const char *kube_status_reason(struct json_object *body);
/* It may pass by itself: 429 and the 5xx that do not say that nobody can do it. */
bool kube_status_passes(int http_status);

#endif
