/* routes.h - the routes below /files: from a request to a file call. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FILES_ROUTES_H
#define ORCHARD_AGENT_FILES_ROUTES_H

struct helper_set;
struct http_exchange;

/* rest: the path behind "/files". */
void files_serve(struct helper_set *set, struct http_exchange *exchange, const char *rest);

#endif
