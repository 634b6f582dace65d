/* http_link.c - a client connection: hands its events to its call, or dies of them when idle. */
/* SPDX-License-Identifier: MIT */
#include "http/http_pool.h"
#include "http/http_read.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>

enum { LINK_PIECE = 64 * 1024, LINK_WRITE = 128 * 1024 };

/* EV_TIMEOUT: only to look at the input again (http_call_resume). */
static void
link_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct http_link *link = arg;
	ssize_t n = 1;

	if ((what & EV_READ) != 0)
		n = http_read(fd, link->in, LINK_PIECE);
	if (n < 0 && errno == EAGAIN)
		return;
	if (link->call == NULL)
		http_link_close(link); /* over, or nobody asked */
	else if (n > 0)
		http_call_on_bytes(link->call, link->in);
	else
		http_call_on_eof(link->call, n < 0 ? errno : 0);
}

static void
link_on_written(struct bufferevent *bev, void *arg)
{
	struct http_link *link = arg;

	(void)bev;
	if (link->call != NULL && link->call->streams)
		http_stream_on_written(link->call);
}

/* Of writing: the peer may have answered before it closed, and reading will tell. */
static void
link_on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_link *link = arg;

	(void)bev;
	(void)what;
	if (link->call == NULL)
		http_link_close(link);
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
	link->in = evbuffer_new();
	link->readable = event_new(pool->base, fd, EV_READ | EV_PERSIST, link_on_readable, link);
	if (link->bev == NULL || link->in == NULL || link->readable == NULL)
		abort();
	if (pool->addr.ss_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	bufferevent_setcb(link->bev, NULL, link_on_written, link_on_event, link);
	bufferevent_set_max_single_write(link->bev, LINK_WRITE);
	event_add(link->readable, NULL); /* writing is enabled from the start */
	return link;
}

void
http_link_close(struct http_link *link)
{
	if (link->call == NULL) {
		TAILQ_REMOVE(&link->pool->idle, link, entry);
		link->pool->idle_count--;
	}
	event_free(link->readable);
	evbuffer_free(link->in);
	bufferevent_free(link->bev);
	free(link);
}

bool
http_link_is_fresh(const struct http_link *link)
{
	char byte;

	return evbuffer_get_length(link->in) == 0 &&
		recv(bufferevent_getfd(link->bev), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}
