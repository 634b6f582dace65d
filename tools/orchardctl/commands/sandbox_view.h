/* sandbox_view.h - sandboxes for people, and walking through all of them. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMANDS_SANDBOX_VIEW_H
#define ORCHARDCTL_COMMANDS_SANDBOX_VIEW_H

#include "orchardctl/output/print.h"

struct client;
struct err;
struct json_object;

extern const struct column sandbox_columns[];

struct sandbox_filter {
	const char *label; /* "NAME=VALUE"; NULL: any */
	const char *status; /* NULL: any */
	long long limit; /* 0: all */
};

/* An array of them, newest first, through all pages; owned by the caller. NULL with err. */
struct json_object *sandbox_list(struct client *client, const struct sandbox_filter *filter, struct err *err);

#endif
