/* archive_call.h - one call for an archive: what was asked for, and who does it in the helper. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_ARCHIVE_CALL_H
#define ORCHARD_AGENT_TAR_ARCHIVE_CALL_H

#include <stdbool.h>

struct helper_side;
struct helper_set;
struct http_exchange;

struct archive_call {
	char *path; /* owned; bytes, never empty */
	bool owners; /* PUT: the archive's, as far as the user may give files away */
	bool any_link; /* PUT: links may lead out */
	bool skip; /* GET: what may not be read is left out */
	bool head; /* only the head of the answer is wanted */
};

/* Each is a helper's run(); arg is the struct archive_call. */
void archive_pack_run(struct helper_side *side, const void *arg);
void archive_unpack_run(struct helper_side *side, const void *arg);

/* routes.c: `/archive`. */
void archive_serve(struct helper_set *set, struct http_exchange *exchange);

#endif
