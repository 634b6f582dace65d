/*
 * http_text.h - a message put together on the stack, and sent from there when it is small and the socket takes it.
 *
 * What outgrows the stack goes on in an evbuffer. Nothing here calls back.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_TEXT_H
#define ORCHARD_HTTP_HTTP_TEXT_H

#include <stddef.h>

struct bufferevent;
struct evbuffer;

enum { HTTP_TEXT_SIZE = 2048, HTTP_NUMBER_SIZE = 24 };

struct http_text {
	struct evbuffer *spilled; /* what came first, when all of it does not fit; or NULL */
	size_t len;
	char bytes[HTTP_TEXT_SIZE];
};

void http_text_init(struct http_text *text);
void http_text_add(struct http_text *text, const char *string);
void http_text_add_bytes(struct http_text *text, const void *bytes, size_t len);
void http_text_add_number(struct http_text *text, size_t number);
size_t http_text_length(const struct http_text *text);
/* All of it, owned by the caller; the text is empty then. */
struct evbuffer *http_text_take(struct http_text *text);
/* To the socket, what does not fit there to the output queue. The text is empty then. */
void http_text_send(struct http_text *text, struct bufferevent *bev);

#endif
