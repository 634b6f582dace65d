/* http_link.c - a client connection: hands its events to its call, or dies of them when idle. */
/* SPDX-License-Identifier: MIT */
#include "http/http_pool.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

enum { LINK_READ_HIGH = 128 * 1024, LINK_PIECE = 64 * 1024 };

static void
link_on_read(struct bufferevent *bev, void *arg)
{
	struct http_link *link = arg;

	if (link->call != NULL)
		http_call_on_bytes(link->call, bufferevent_get_input(bev));
	else
		http_link_close(link); /* nobody asked */
}

static void
link_on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_link *link = arg;

	(void)bev;
	if (link->call == NULL)
		http_link_close(link);
	else if ((what & BEV_EVENT_WRITING) == 0)
		http_call_on_eof(link->call, (what & BEV_EVENT_ERROR) != 0 ? errno : 0);
	/* Writing failed: the peer may have answered before it closed, and reading will tell. */
}

struct http_link *
http_link_create(struct http_pool *pool, int fd)
{
	struct http_link *link = calloc(1, sizeof *link);
	int one = 1;

	if (link == NULL)
		abort();
	link->pool = pool;
	link->bev = bufferevent_socket_new(pool->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (link->bev == NULL)
		abort();
	if (pool->addr.ss_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	bufferevent_setcb(link->bev, link_on_read, NULL, link_on_event, link);
	bufferevent_setwatermark(link->bev, EV_READ, 0, LINK_READ_HIGH);
	bufferevent_set_max_single_read(link->bev, LINK_PIECE);
	bufferevent_set_max_single_write(link->bev, LINK_READ_HIGH);
	bufferevent_enable(link->bev, EV_READ); /* writing is enabled from the start */
	return link;
}

void
http_link_close(struct http_link *link)
{
	if (link->call == NULL) {
		TAILQ_REMOVE(&link->pool->idle, link, entry);
		link->pool->idle_count--;
	}
	bufferevent_free(link->bev);
	free(link);
}

bool
http_link_is_fresh(const struct http_link *link)
{
	char byte;

	return evbuffer_get_length(bufferevent_get_input(link->bev)) == 0 &&
		recv(bufferevent_getfd(link->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}
