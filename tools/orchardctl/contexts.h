/*
 * contexts.h - the configuration file: servers by name, and which of them is used.
 *
 *	{"current_context": "lab", "contexts": {"lab": {"server": "http://lab:8000", "api_key": "..."}}}
 *
 * It holds keys, so it is written with mode 0600. What decides, first to last: the command line, SANDBOX_BASE_URL and
 * SANDBOX_API_KEY, the file, the default. A key of the file goes to the server that stands beside it, and to no other.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_CONTEXTS_H
#define ORCHARDCTL_CONTEXTS_H

#include "base/cleanup.h"

struct ctl;
struct err;
struct json_object;

struct contexts {
	char *path; /* owned; NULL: there is no home directory to keep it in */
	struct json_object *file; /* owned; an object with both members, also when there is no file */
};

/* A file that is missing is an empty one. */
int contexts_load(struct contexts *contexts, struct err *err) MUSTCHECK;
int contexts_save(const struct contexts *contexts, struct err *err) MUSTCHECK;
void contexts_fini(struct contexts *contexts);
#define AUTO_CONTEXTS __attribute__((cleanup(contexts_fini))) struct contexts

const char *contexts_current(const struct contexts *contexts); /* NULL: none */
struct json_object *contexts_all(const struct contexts *contexts); /* borrowed */
struct json_object *contexts_find(const struct contexts *contexts, const char *name); /* borrowed, or NULL */

/* Fills ctl->server. */
int contexts_resolve(struct ctl *ctl, struct err *err) MUSTCHECK;
/* ERR_INVALID unless it is the URL of a server. */
int contexts_check_url(const char *url, struct err *err) MUSTCHECK;

#endif
