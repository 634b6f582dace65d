/*
 * auth.h - who is calling: API keys, compared in constant time, and the tenant of each.
 *
 * A key comes as `X-API-Key: KEY` or `Authorization: Bearer KEY`; the first one wins
 * when both are sent. Every configured key is compared, whichever fits, so the time
 * tells nothing about which key it was or how much of it was right.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_AUTH_H
#define ORCHARD_WORKER_AUTH_H

#include "base/cleanup.h"

struct config_list;

enum auth_result { AUTH_OK, AUTH_MISSING, AUTH_WRONG };

/* The header values as sent, NULL when absent. *ret_tenant is a literal. */
enum auth_result auth_check(const struct config_list *keys, const char *x_api_key, const char *authorization,
	const char **ret_tenant) MUSTCHECK;
/* Whose the things are that a caller without a key makes (auth_enabled off). */
const char *auth_open_tenant(void);

#endif
