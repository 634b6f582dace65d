/*
 * router.h - which handler a method and a path mean.
 *
 * The raw path is split first and each segment decoded afterwards, so an encoded
 * slash stays inside its segment and can never reach another route. An empty
 * segment (also a trailing slash) and a malformed escape match nothing.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_ROUTER_H
#define ORCHARD_WORKER_ROUTER_H

#include "http/http_parser.h"
#include "ipc/sandbox_table.h"

#include <stddef.h>

struct request;

enum route_auth {
	ROUTE_OPEN,
	ROUTE_KEY,
	ROUTE_METRICS, /* a key if metrics_auth says so */
	ROUTE_SOCKET /* a key, also where a browser can put it: handshake_key() */
};
enum route_body {
	BODY_NONE,
	BODY_OBJECT,
	BODY_OPTIONAL, /* an empty one reads as {} */
	BODY_NAMES /* an object whose strings may be names of files: json_parse_names() */
};

struct route {
	enum http_method method;
	const char *pattern; /* "{sandbox}" and "{job}" stand for one segment */
	void (*handle)(struct request *request);
	enum route_auth auth;
	enum route_body body;
};

enum router_result { ROUTER_FOUND, ROUTER_NO_PATH, ROUTER_NO_METHOD, ROUTER_OPTIONS };
enum router_id { ROUTER_ID_NONE, ROUTER_ID_SANDBOX, ROUTER_ID_JOB };

struct router_match {
	const struct route *route; /* ROUTER_FOUND */
	enum router_id id_kind;
	char id[SANDBOX_ID_SIZE]; /* decoded; "" when it is too long to be one */
	unsigned int methods; /* bit per enum http_method that this path takes, unless ROUTER_NO_PATH */
};

enum { ROUTER_ALLOW_SIZE = 64 };

/* HEAD is found where GET exists; OPTIONS on any known path. */
enum router_result router_find(const struct route *routes, size_t count, enum http_method method,
	const char *raw_path, struct router_match *ret_match);
/* False when the id breaks the rule of its kind: then nothing has it. */
bool router_id_is_valid(const struct router_match *match);
/* "GET, HEAD, OPTIONS" */
void router_allow(unsigned int methods, char ret_allow[ROUTER_ALLOW_SIZE]);

#endif
