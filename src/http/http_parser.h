/*
 * http_parser.h - strict HTTP/1.1 messages, pushed in as they come (no I/O here).
 *
 * Server and client side, shared with the agent. It refuses what smuggling
 * needs: Content-Length with Transfer-Encoding, differing or malformed lengths,
 * obs-fold, bare LF, NUL, white space before a colon, any coding but chunked.
 * Bounded: head size, header count, chunk line, trailer size.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_PARSER_H
#define ORCHARD_HTTP_HTTP_PARSER_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;
struct http_head;

enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_PUT, HTTP_PATCH, HTTP_DELETE, HTTP_OPTIONS, HTTP_OTHER };

/* A parsed head; freed with http_head_free. Strings live as long as it. */
const char *http_head_header(const struct http_head *head, const char *name); /* NULL: absent; first of several */
/* That of the index-th header line of that name, from 0; NULL: there are not so many. */
const char *http_head_header_at(const struct http_head *head, const char *name, uint32_t index);
/* How many header lines have that name. */
uint32_t http_head_header_count(const struct http_head *head, const char *name);
enum http_method http_head_method(const struct http_head *head);
const char *http_head_method_name(const struct http_head *head);
const char *http_head_target(const struct http_head *head); /* as sent: origin or absolute form */
const char *http_head_path(const struct http_head *head); /* raw path, still percent-encoded, no query */
const char *http_head_query(const struct http_head *head); /* raw, without '?'; "" when absent */
/*
 * The one protocol that a request asks for instead of HTTP/1.1, or NULL: only a GET of HTTP/1.1 without a body, with one
 * Upgrade line that names one protocol, and "upgrade" in Connection. Any other Upgrade is ignored, as RFC 9110 allows.
 */
const char *http_head_upgrade(const struct http_head *head);
int http_head_status(const struct http_head *head); /* of a response */
int http_head_minor_version(const struct http_head *head); /* HTTP/1.0 or 1.1 */
/*
 * Decodes %XX in text of len bytes ('+' stays as it is). *ret_text malloc'ed. -1 for a malformed escape
 * or a NUL (%00).
 */
int http_percent_decode(const char *text, size_t len, char **ret_text) MUSTCHECK;
/*
 * The decoded value of a query parameter ('+' is a space): 1 found (*ret_value malloc'ed),
 * 0 absent, -1 malformed or given twice.
 */
int http_query_get(const char *query, const char *name, char **ret_value) MUSTCHECK;
void http_head_free(struct http_head *head);

#endif
