/*
 * driver_asker.c - both drivers: ask the process of this host that makes sandboxes, over its SEQPACKET socket.
 *
 * A request stays in the queue until its answer has come. When the connection breaks it is simply asked again on the
 * next one: create and destroy are idempotent by uid. Only a list is not: half of one and half of another prove nothing,
 * so it ends with an error, and so do resources; and what a sandbox takes is not worth a second try. What is not taken
 * for GIVE_UP_MS ends with ERR_UNAVAILABLE, and so does what was asked BREAKS_MAX times without an answer: it may be what
 * breaks the one that is asked.
 */
/* SPDX-License-Identifier: MIT */
#include "backend/driver_asker.h"

#include "backend/driver_env.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	PAUSE_MIN_MS = 100,
	PAUSE_MAX_MS = 2000,
	GIVE_UP_MS = 30000,
	STAT_GIVE_UP_MS = 1000,
	BREAKS_MAX = 5,
	SEND_BUFFER = 1 << 20,
	READS_AT_ONCE = 64
};

static struct asker *
asker_of(struct driver *driver)
{
	return (struct asker *)(void *)driver;
}

/* --- the connection --- */

static void asker_flush(struct asker *asker);

/* Fails what waited too long, plans the next try while anything waits. */
static void
asker_plan(struct asker *asker)
{
	struct asker_request *request, *next;
	int64_t now = clock_boot_ms();
	struct timeval tv = clock_tv(asker->pause_ms);
	struct err err;

	for (request = TAILQ_FIRST(&asker->requests); request != NULL; request = next) {
		next = TAILQ_NEXT(request, link);
		if (request->sent || now < request->give_up_ms)
			continue;
		err_set(&err, ERR_UNAVAILABLE,
			"the process that makes sandboxes does not answer; see the server's log");
		asker_request_end(asker, request, NULL, &err);
		next = TAILQ_FIRST(&asker->requests); /* the callback may have changed the queue */
	}
	if (!TAILQ_EMPTY(&asker->requests) || asker->gone != NULL)
		event_add(asker->retry, &tv);
}

/* Ends those that a broken connection ends; the others are asked again. */
static void
asker_judge_broken(struct asker *asker)
{
	struct asker_request *request, *next;
	struct err err;

	for (request = TAILQ_FIRST(&asker->requests); request != NULL; request = next) {
		next = TAILQ_NEXT(request, link);
		if (!request->broken)
			continue;
		request->broken = false;
		if (request->op == SPAWN_LIST || request->op == SPAWN_RESOURCES)
			err_set(&err, ERR_UNAVAILABLE, "the connection broke in the middle of the list");
		else if (request->op == SPAWN_STAT)
			err_set(&err, ERR_UNAVAILABLE, "the connection broke before the answer");
		else if (++request->breaks >= BREAKS_MAX)
			err_set(&err, ERR_UNAVAILABLE,
				"the process that makes sandboxes has died %d times at it; see the server's log",
				BREAKS_MAX);
		else
			continue;
		asker_request_end(asker, request, NULL, &err);
		next = TAILQ_FIRST(&asker->requests); /* the callback may have changed the queue */
	}
}

static void
asker_disconnect(struct asker *asker)
{
	struct asker_request *request;

	event_del(asker->readable);
	event_del(asker->writable);
	close(asker->fd);
	asker->fd = -1;
	asker->gone_asked = false;
	TAILQ_FOREACH(request, &asker->requests, link)
	{
		if (!request->sent)
			continue;
		request->sent = false;
		request->broken = true;
		request->give_up_ms = clock_boot_ms() + GIVE_UP_MS;
	}
	asker_judge_broken(asker);
	asker_plan(asker);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct asker *asker = arg;
	union asker_answer answer;
	ssize_t n;

	(void)what;
	for (int reads = 0; reads < READS_AT_ONCE; reads++) {
		n = recv(fd, &answer, sizeof answer, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n < (ssize_t)sizeof answer.head || answer.head.version != SPAWN_VERSION ||
			(size_t)n != asker_answer_size(answer.head.op)) {
			asker_disconnect(asker);
			return;
		}
		asker->pause_ms = PAUSE_MIN_MS;
		asker_on_answer(asker, &answer);
		if (asker->fd != fd)
			return;
	}
}

static void
on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	asker_flush(arg);
}

static int
asker_connect(struct asker *asker)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int size = SEND_BUFFER;
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, asker->path, sizeof address.sun_path);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
		return -1;
	asker->fd = STEAL_FD(fd);
	event_assign(asker->readable, asker->base, asker->fd, EV_READ | EV_PERSIST, on_readable, asker);
	event_assign(asker->writable, asker->base, asker->fd, EV_WRITE, on_writable, asker);
	event_add(asker->readable, NULL);
	return 0;
}

/* 1: sent, 0: the socket is full, -1: the connection is broken. */
static int
asker_send(struct asker *asker, const void *data, size_t len)
{
	ssize_t n;

	do
		n = send(asker->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return 1;
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS) ? 0 : -1;
}

static int
asker_send_watch(struct asker *asker)
{
	struct spawn_header head = { SPAWN_VERSION, SPAWN_WATCH, 0 };
	int rc = 1;

	if (asker->gone != NULL && !asker->gone_asked) {
		rc = asker_send(asker, &head, sizeof head);
		asker->gone_asked = rc == 1;
	}
	return rc;
}

/* Sends what was not sent yet, as far as the socket takes it; connects first when that is needed. */
static void
asker_flush(struct asker *asker)
{
	struct asker_request *request;
	int rc;

	if (asker->fd < 0 && asker_connect(asker) != 0) {
		if (asker->pause_ms < PAUSE_MAX_MS)
			asker->pause_ms *= 2;
		asker_plan(asker);
		return;
	}
	rc = asker_send_watch(asker);
	TAILQ_FOREACH(request, &asker->requests, link)
	{
		if (rc != 1)
			break;
		if (request->sent)
			continue;
		rc = asker_send(asker, request->data, request->len);
		request->sent = rc == 1;
	}
	if (rc == 0)
		event_add(asker->writable, NULL);
	else if (rc < 0)
		asker_disconnect(asker);
}

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	asker_flush(arg);
}

/* --- struct driver_ops --- */

/* Sending waits for the next turn of the loop, so that nobody is called back from within a call. */
static struct asker_request *
asker_ask(struct asker *asker, uint32_t op, const void *message, size_t len, size_t more)
{
	struct asker_request *request = calloc(1, sizeof *request + len + more);
	struct spawn_header head = { SPAWN_VERSION, op, ++asker->next_seq };
	struct timeval now = { 0 };

	if (request == NULL)
		abort();
	memcpy(request->data, message, len);
	memcpy(request->data, &head, sizeof head);
	request->op = op;
	request->seq = head.seq;
	request->len = len + more;
	request->give_up_ms = clock_boot_ms() + GIVE_UP_MS;
	TAILQ_INSERT_TAIL(&asker->requests, request, link);
	if (asker->fd >= 0 || !event_pending(asker->retry, EV_TIMEOUT, NULL))
		event_add(asker->retry, &now);
	return request;
}

static void
asker_create(struct driver *driver, const struct driver_spec *spec, driver_progress_f *progress,
	driver_created_f *done, void *arg)
{
	struct asker *asker = asker_of(driver);
	struct spawn_create create = {
		.block_network = spec->block_network,
		.cpu_milli = spec->cpu_milli,
		.memory_bytes = spec->memory_bytes,
		.disk_bytes = spec->disk_bytes,
		.pids_max = spec->pids_max,
		.env_len = (uint32_t)driver_env_size(spec->env),
	};
	struct asker_request *request;

	if (spec->egress != NULL)
		create.egress = *spec->egress;
	/* What does not fit is cut, and refused by the spawner as malformed; the domain bounds all of them. */
	snprintf(create.id, sizeof create.id, "%s", spec->id);
	snprintf(create.uid, sizeof create.uid, "%s", spec->uid);
	snprintf(create.token, sizeof create.token, "%s", spec->token);
	snprintf(create.line, sizeof create.line, "%s", spec->line);
	snprintf(create.tenant, sizeof create.tenant, "%s", spec->tenant);
	snprintf(create.labels, sizeof create.labels, "%s", spec->labels);
	snprintf(create.image, sizeof create.image, "%s", spec->image);
	snprintf(create.working_dir, sizeof create.working_dir, "%s", spec->working_dir);
	request = asker_ask(asker, SPAWN_CREATE, &create, sizeof create, create.env_len);
	driver_env_write(spec->env, request->data + sizeof create);
	request->progress = progress;
	request->created = done;
	request->arg = arg;
}

/* About one sandbox. */
static struct asker_request *
asker_ask_of(struct asker *asker, enum spawn_op op, const char *id, const char *uid)
{
	struct spawn_target target = { 0 };

	snprintf(target.id, sizeof target.id, "%s", id);
	snprintf(target.uid, sizeof target.uid, "%s", uid);
	return asker_ask(asker, op, &target, sizeof target, 0);
}

static void
asker_destroy(struct driver *driver, const char *id, const char *uid, driver_done_f *done, void *arg)
{
	struct asker_request *request = asker_ask_of(asker_of(driver), SPAWN_DESTROY, id, uid);

	request->done = done;
	request->arg = arg;
}

static void
asker_list(struct driver *driver, driver_item_f *item, driver_done_f *done, void *arg)
{
	struct spawn_header head = { 0 };
	struct asker_request *request = asker_ask(asker_of(driver), SPAWN_LIST, &head, sizeof head, 0);

	request->item = item;
	request->done = done;
	request->arg = arg;
}

static void
asker_watch(struct driver *driver, driver_item_f *gone, void *arg)
{
	struct asker *asker = asker_of(driver);
	struct timeval now = { 0 };

	asker->gone = gone;
	asker->gone_arg = arg;
	asker->gone_asked = false;
	event_add(asker->retry, &now);
}

static void
asker_stat(struct driver *driver, const char *id, const char *uid, driver_usage_f *done, void *arg)
{
	struct asker_request *request = asker_ask_of(asker_of(driver), SPAWN_STAT, id, uid);

	request->give_up_ms = clock_boot_ms() + STAT_GIVE_UP_MS;
	request->usage = done;
	request->arg = arg;
}

static void
asker_host(struct driver *driver, driver_host_f *done, void *arg)
{
	struct spawn_header head = { 0 };
	struct asker_request *request = asker_ask(asker_of(driver), SPAWN_HOST, &head, sizeof head, 0);

	request->host = done;
	request->arg = arg;
}

static void
asker_resources(struct driver *driver, driver_resources_f *done, void *arg)
{
	struct spawn_header head = { 0 };
	struct asker_request *request = asker_ask(asker_of(driver), SPAWN_RESOURCES, &head, sizeof head, 0);

	request->text = must_alloc(evbuffer_new());
	request->resources = done;
	request->arg = arg;
}

static void
on_prefetch(const struct err *why, void *arg)
{
	(void)arg;
	if (why != NULL)
		log_warn("an image can't be prefetched: %s", why->msg);
}

static void
asker_prefetch(struct driver *driver, const char *image, bool first)
{
	struct spawn_prefetch order = { .first = first };
	struct asker_request *request;

	snprintf(order.image, sizeof order.image, "%s", image);
	request = asker_ask(asker_of(driver), SPAWN_PREFETCH, &order, sizeof order, 0);
	request->done = on_prefetch;
}

static void
asker_free(struct driver *driver)
{
	struct asker *asker = asker_of(driver);
	struct asker_request *request;

	while ((request = TAILQ_FIRST(&asker->requests)) != NULL) {
		TAILQ_REMOVE(&asker->requests, request, link);
		asker_request_free(request);
	}
	if (asker->fd >= 0) {
		event_del(asker->readable);
		event_del(asker->writable);
		close(asker->fd);
	}
	event_free(asker->retry);
	event_free(asker->readable);
	event_free(asker->writable);
	free(asker);
}

#define ASKER_OPS(text, counted, more)                                                                             \
	{                                                                                                          \
		.name = (text), .create = asker_create, .destroy = asker_destroy, .list = asker_list,              \
		.watch = asker_watch, .host = asker_host, .prefetch = asker_prefetch, .free = asker_free,          \
		.stat = (counted), .resources = (more)                                                             \
	}

static const struct driver_ops local_ops = ASKER_OPS("local", asker_stat, NULL),
			       kubernetes_ops = ASKER_OPS("kubernetes", NULL, asker_resources);

int
driver_asker_create(
	struct event_base *base, const struct config *config, struct driver **ret_driver, struct err *err)
{
	struct asker *asker = alloc_zero(1, sizeof *asker);

	if (snprintf(asker->path, sizeof asker->path, "%s/spawner.sock", config->run_dir) >=
		(int)sizeof asker->path) {
		free(asker);
		return err_set(err, ERR_INVALID, "run_dir is too long for a socket: %s", config->run_dir);
	}
	asker->driver.ops = config_is_kubernetes(config) ? &kubernetes_ops : &local_ops;
	asker->base = base;
	asker->fd = -1;
	asker->pause_ms = PAUSE_MIN_MS;
	TAILQ_INIT(&asker->requests);
	asker->retry = evtimer_new(base, on_retry, asker);
	asker->readable = event_new(base, -1, 0, on_retry, asker);
	asker->writable = event_new(base, -1, 0, on_retry, asker);
	if (asker->retry == NULL || asker->readable == NULL || asker->writable == NULL)
		abort();
	*ret_driver = &asker->driver;
	return 0;
}
