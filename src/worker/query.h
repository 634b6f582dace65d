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

#define QUERY_MAX_OFFSET (INT64_C(1) << 53) /* what every JSON reader can hold */

/* Answers with 422 for one parameter; false. */
bool query_refuse(struct request *request, const char *name, const char *type, const char *words);
/* Decoded text; *ret malloc'ed. */
bool query_text(struct request *request, const char *name, char **ret) MUSTCHECK;
bool query_limit(struct request *request, uint32_t max, uint32_t *ret) MUSTCHECK;
/* A position in a stream: a whole number from 0 to QUERY_MAX_OFFSET. */
bool query_offset(struct request *request, const char *name, int64_t *ret) MUSTCHECK;
/* 0 or 1. */
bool query_flag(struct request *request, const char *name, bool *ret) MUSTCHECK;
/* A whole number from min to QUERY_MAX_OFFSET, as text. */
bool query_parse_count(const char *text, int64_t min, int64_t *ret) MUSTCHECK;
/* `timeout` in seconds, a fraction allowed, as milliseconds; that or the default is cut to max_wait_seconds. */
bool query_timeout_ms(struct request *request, int64_t *ret) MUSTCHECK;

#endif
