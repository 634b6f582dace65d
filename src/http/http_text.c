/* http_text.c - puts a message together without allocating, as long as it is small. */
/* SPDX-License-Identifier: MIT */
#include "http/http_text.h"
#include "http/http_send.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>

void
http_text_init(struct http_text *text)
{
	text->spilled = NULL;
	text->len = 0;
}

static void
text_spill(struct http_text *text, const void *bytes, size_t len)
{
	if (text->spilled == NULL)
		text->spilled = evbuffer_new();
	if (text->spilled == NULL || evbuffer_add(text->spilled, bytes, len) < 0)
		abort();
}

void
http_text_add_bytes(struct http_text *text, const void *bytes, size_t len)
{
	if (len == 0)
		return;
	if (len > sizeof text->bytes - text->len) {
		text_spill(text, text->bytes, text->len);
		text->len = 0;
	}
	if (len > sizeof text->bytes) {
		text_spill(text, bytes, len);
		return;
	}
	memcpy(text->bytes + text->len, bytes, len);
	text->len += len;
}

void
http_text_add(struct http_text *text, const char *string)
{
	http_text_add_bytes(text, string, strlen(string));
}

void
http_text_add_number(struct http_text *text, size_t number)
{
	char digits[HTTP_NUMBER_SIZE], *at = digits + sizeof digits;

	do
		*--at = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	http_text_add_bytes(text, at, (size_t)(digits + sizeof digits - at));
}

size_t
http_text_length(const struct http_text *text)
{
	return text->len + (text->spilled != NULL ? evbuffer_get_length(text->spilled) : 0);
}

struct evbuffer *
http_text_take(struct http_text *text)
{
	struct evbuffer *all;

	text_spill(text, text->bytes, text->len);
	all = text->spilled;
	http_text_init(text);
	return all;
}

void
http_text_send(struct http_text *text, struct bufferevent *bev)
{
	struct evbuffer *out = bufferevent_get_output(bev);
	ssize_t n = 0;

	if (text->spilled != NULL) {
		struct evbuffer *all = http_text_take(text);

		http_send(bev, all);
		evbuffer_free(all);
		return;
	}
	/* As http_send(): what is queued goes first, and a failed write is met again by the loop. */
	if (evbuffer_get_length(out) == 0)
		n = send(bufferevent_getfd(bev), text->bytes, text->len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		n = 0;
	if ((size_t)n < text->len && evbuffer_add(out, text->bytes + n, text->len - (size_t)n) < 0)
		abort();
	text->len = 0;
}
