/* query.h - fields of a request's query; a wrong one is answered here. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_QUERY_H
#define ORCHARD_AGENT_QUERY_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct http_exchange;

/* An integer of at least 0; more than max counts as max. Not there: *ret stays. False: answered. */
bool query_int(struct http_exchange *exchange, const char *name, int64_t max, int64_t *ret) MUSTCHECK;
/* Text, decoded and malloc'ed; not there: *ret stays, unless it is required, which also means not empty. False: answered. */
bool query_text(struct http_exchange *exchange, const char *name, bool required, char **ret) MUSTCHECK;
/* The user to act as, as query_text(); one that this agent cannot act as is refused. False: answered. */
bool query_user(struct http_exchange *exchange, char **ret) MUSTCHECK;
/* Required. False: answered. */
bool query_uuid(struct http_exchange *exchange, const char *name, uint8_t ret_id[16]) MUSTCHECK;

#endif
