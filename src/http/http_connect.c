/*
 * http_connect.c - brings a call to a connection of its own, without blocking.
 *
 * A unix socket whose backlog is full says EAGAIN and gives nothing to wait for,
 * so that one is tried again with growing pauses until connect_timeout_ms.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_pool.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#include <event2/event.h>

enum { BACKOFF_FIRST_MS = 2, BACKOFF_MAX_MS = 100 };

static void connect_try(struct http_call *call);

void
http_connect_stop(struct http_call *call)
{
	if (call->event != NULL)
		event_free(STEAL_PTR(call->event));
	if (call->fd >= 0)
		close(STEAL_FD(call->fd));
}

static void
connect_watch(struct http_call *call, int fd, int64_t delay_ms, event_callback_fn on_event)
{
	struct timeval delay = clock_tv(delay_ms);

	call->fd = fd;
	call->event = event_new(call->pool->base, fd, fd >= 0 ? EV_WRITE : 0, on_event, call);
	if (call->event == NULL)
		abort();
	event_add(call->event, fd >= 0 ? NULL : &delay);
}

static void
connect_done(struct http_call *call, int fd)
{
	call->connect_deadline = 0;
	http_call_connected(call, http_link_create(call->pool, fd));
}

static void
connect_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct http_call *call = arg;
	int error = 0;
	socklen_t len = sizeof error;

	(void)what;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error != 0) {
		http_call_fail(call, HTTP_NOT_SENT, ERR_UNAVAILABLE, "connect to %s: %s", call->pool->endpoint,
			strerror(error));
		return;
	}
	fd = STEAL_FD(call->fd);
	http_connect_stop(call);
	connect_done(call, fd);
}

static void
connect_on_failure(evutil_socket_t fd, short what, void *arg)
{
	struct http_call *call = arg;

	(void)fd;
	(void)what;
	http_call_fail(call, HTTP_NOT_SENT, call->why.code, "%s", call->why.msg);
}

void
http_connect_fail_later(struct http_call *call)
{
	connect_watch(call, -1, 0, connect_on_failure);
}

static void
connect_on_backoff(evutil_socket_t fd, short what, void *arg)
{
	struct http_call *call = arg;

	(void)fd;
	(void)what;
	http_connect_stop(call);
	connect_try(call);
}

static void
connect_try(struct http_call *call)
{
	struct http_pool *pool = call->pool;
	AUTO_FD fd = socket(pool->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		err_set_errno(&call->why, errno, "socket for %s", pool->endpoint);
		http_connect_fail_later(call);
	} else if (connect(fd, (struct sockaddr *)&pool->addr, pool->addr_len) == 0) {
		connect_done(call, STEAL_FD(fd));
	} else if (errno == EINPROGRESS || errno == EINTR) {
		connect_watch(call, STEAL_FD(fd), 0, connect_on_writable);
	} else if (errno == EAGAIN) {
		connect_watch(call, -1, call->backoff_ms, connect_on_backoff);
		if (call->backoff_ms < BACKOFF_MAX_MS)
			call->backoff_ms *= 2;
	} else {
		err_set(&call->why, ERR_UNAVAILABLE, "connect to %s: %s", pool->endpoint, strerror(errno));
		http_connect_fail_later(call);
	}
}

void
http_connect_start(struct http_call *call)
{
	call->backoff_ms = BACKOFF_FIRST_MS;
	call->connect_deadline = clock_boot_ms() + call->pool->connect_timeout_ms;
	http_pool_schedule(call->pool, call->connect_deadline);
	connect_try(call);
}
