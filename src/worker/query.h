/*
 * query.h - typed query parameters.
 *
 * A getter answers the request with 422 and returns false when the value is wrong; the
 * request is gone then. *ret keeps its default when the parameter is absent.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_QUERY_H
#define ORCHARD_WORKER_QUERY_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct request;

/* Decoded text; *ret malloc'ed. */
bool query_text(struct request *request, const char *name, char **ret) MUSTCHECK;
bool query_limit(struct request *request, uint32_t max, uint32_t *ret) MUSTCHECK;
/* `timeout` in seconds, a fraction allowed, as milliseconds; that or the default is cut to max_wait_seconds. */
bool query_timeout_ms(struct request *request, int64_t *ret) MUSTCHECK;

#endif
