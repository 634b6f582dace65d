/* url.h - where Redis is: redis://[[user]:password@]host[:port][/db] or unix://[[user]:password@]/path[?db=N]. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_URL_H
#define ORCHARD_REDIS_URL_H

#include "base/cleanup.h"

#include <stdint.h>

struct err;

enum { REDIS_URL_TEXT_MAX = 256 };

struct redis_url {
	char host[REDIS_URL_TEXT_MAX]; /* a name or an address without brackets; empty: path */
	char path[108]; /* of a unix socket */
	char user[REDIS_URL_TEXT_MAX]; /* empty: the default user */
	char password[REDIS_URL_TEXT_MAX]; /* empty: none */
	uint16_t port;
	uint32_t db;
};

/* ERR_INVALID says what is wrong, never with the password in it; ERR_UNSUPPORTED for rediss://. */
int redis_url_parse(const char *text, struct redis_url *ret_url, struct err *err) MUSTCHECK;
/* Without user and password, for people. */
void redis_url_describe(const struct redis_url *url, char *buf, size_t size);

#endif
