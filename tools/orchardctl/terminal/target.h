/* target.h - the server's URL in the parts that libwebsockets wants. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_TARGET_H
#define ORCHARDCTL_TERMINAL_TARGET_H

#include "base/cleanup.h"

#include <stdbool.h>

struct err;
struct server;

struct target {
	char *address; /* owned; an IPv6 address without its brackets */
	char *host; /* owned; as the header has it: with the port unless that is the usual one */
	char *prefix; /* owned; the path that comes before every other, without a slash at its end */
	int port;
	bool tls;
	const char *key, *ca_file; /* the server's; NULL: none */
};

/* ERR_INVALID: the URL is none. target_fini() is right in any case. */
int target_init(struct target *target, const struct server *server, struct err *err) MUSTCHECK;
void target_fini(struct target *target);

#endif
