/* http_send.c - tries to write, then queues. */
/* SPDX-License-Identifier: MIT */
#include "http/http_send.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>

enum { SEND_AT_ONCE = 128 * 1024 };

void
http_send(struct bufferevent *bev, struct evbuffer *message)
{
	struct evbuffer *out = bufferevent_get_output(bev);

	/* What is queued goes first. */
	if (evbuffer_get_length(out) == 0)
		(void)evbuffer_write_atmost(message, bufferevent_getfd(bev), SEND_AT_ONCE);
	evbuffer_add_buffer(out, message);
}
