/*
 * http_parse.h - the push parser behind server and client; private to src/http and its tests.
 *
 * One struct http_parser reads one message after the other from an evbuffer that
 * grows as bytes come: first http_parser_head until it gives a head, then
 * http_parser_body until the body has ended. Every scan resumes where the last
 * one stopped, so a sender of single bytes costs linear time.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_PARSE_H
#define ORCHARD_HTTP_HTTP_PARSE_H

#include "http/http_parser.h"

enum {
	HTTP_MAX_FIELDS = 100,
	HTTP_MAX_TARGET = 8192,
	HTTP_MAX_CHUNK_LINE = 1024, /* size and extensions of one chunk */
	HTTP_MAX_EXTENSIONS = 16384, /* all extensions of a body together */
	HTTP_MAX_TRAILER = 8192 /* all trailer lines of a body together */
};

enum http_side { HTTP_SIDE_REQUEST, HTTP_SIDE_RESPONSE };

/* How the length of a body is told; other values are a Content-Length. */
enum { HTTP_LENGTH_CHUNKED = -1, HTTP_LENGTH_UNTIL_CLOSE = -2 };

struct http_field {
	uint32_t name; /* offsets into text */
	uint32_t value;
};

struct http_head {
	enum http_method method;
	int status;
	int minor_version;
	uint32_t field_count;
	int64_t length; /* of the body that follows */
	bool keep_alive;
	bool expect_continue;
	bool upgrade;
	const char *method_name;
	const char *target;
	const char *path;
	const char *query;
	struct http_field fields[HTTP_MAX_FIELDS];
	char text[]; /* the head, a NUL after each part; then path and query */
};

enum http_parser_state { HTTP_IN_HEAD, HTTP_IN_LENGTH, HTTP_IN_SIZE, HTTP_IN_CHUNK, HTTP_IN_CRLF, HTTP_IN_TRAILER };

struct http_parser {
	enum http_side side;
	enum http_parser_state state;
	size_t max_head;
	size_t scan; /* bytes of the buffer that were looked at */
	size_t line; /* where the line starts that scan stands in */
	size_t first_line; /* length of the start line, 0: not complete yet */
	unsigned char last; /* the byte before scan */
	int64_t length; /* of the current body */
	uint64_t left; /* of the body or the chunk */
	size_t extensions;
	size_t trailer;
	int status; /* what to answer after -1 */
	const char *detail; /* why; a literal */
};

void http_parser_init(struct http_parser *parser, enum http_side side, size_t max_head);
/*
 * 1: *ret_head is a head, owned by the caller, and its bytes have left in. 0: more bytes are needed. -1: status
 * and detail say what is wrong, and nothing more can be read from this connection.
 */
int http_parser_head(struct http_parser *parser, struct evbuffer *in, struct http_head **ret_head) MUSTCHECK;
/* True between the first byte of a head and its end. */
bool http_parser_in_head(const struct http_parser *parser);
/* Of a response: what the request's method makes of the body (HEAD has none). Call it between head and body. */
void http_parser_no_body(struct http_parser *parser);
/* The message had no body: on to the next head. */
void http_parser_next(struct http_parser *parser);
/*
 * Moves at most max bytes of body from in to out. 1: the body has ended. 0: more bytes are needed, or max was
 * reached. -1 as above.
 */
int http_parser_body(struct http_parser *parser, struct evbuffer *in, struct evbuffer *out, size_t max) MUSTCHECK;

/*
 * Fills a head from its bytes (start line to the empty line) that stand in head->text, which has room for
 * first_line + 2 bytes more behind them. 0, or the status to answer and *ret_detail.
 */
int http_head_parse(struct http_head *head, size_t len, enum http_side side, const char **ret_detail) MUSTCHECK;
bool http_text_is_token(const char *text, size_t len);
/* No control bytes but tab. */
bool http_text_is_value(const char *text, size_t len);

#endif
