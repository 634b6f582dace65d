/*
 * kube_watch.c - list, stream, pause, and again.
 *
 * Every end of a list or a stream comes to watch_pause(), the only place that decides what is next and when. A stream
 * that lasted makes up for what failed before; one that ends at once, whatever it said, does not.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_watch.h"
#include "kube/kube_backoff.h"
#include "kube/kube_client_impl.h"
#include "kube/kube_lines.h"
#include "kube/kube_list.h"
#include "kube/kube_status.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <string.h>

#include <event2/event.h>

enum { PAUSE_MAX_MS = 30000, RETRY_AFTER_MAX_MS = 300000, LASTING_MS = 5000, GRACE_S = 10, TRIES_MAX = 6 };

struct kube_watch {
	TAILQ_ENTRY(kube_watch) entry;
	struct kube_client *client;
	char *path, *selector;
	const struct kube_watch_ops *ops;
	void *arg;
	struct kube_list *list; /* goes on */
	struct kube_attempt attempt; /* the stream */
	char *stream_path;
	struct kube_lines lines;
	char *version; /* after the last thing that was told; NULL: a list comes next */
	bool reset_told; /* for the list that goes on */
	int64_t listed_ms; /* when the last list began; 0: none did */
	int64_t stream_ms; /* when the stream began */
	struct kube_backoff backoff;
	struct event *pause;
	uint32_t busy; /* callbacks that run */
	bool stopped; /* by one of them */
};

static void
watch_free(struct kube_watch *watch)
{
	if (watch->list != NULL)
		kube_list_cancel(watch->list);
	kube_attempt_cancel(&watch->attempt);
	kube_lines_clear(&watch->lines);
	event_free(watch->pause);
	TAILQ_REMOVE(&watch->client->watches, watch, entry);
	free(watch->path);
	free(watch->selector);
	free(watch->stream_path);
	free(watch->version);
	free(watch);
}

void
kube_watch_free_all(struct kube_client *client)
{
	struct kube_watch *watch;

	while ((watch = TAILQ_FIRST(&client->watches)) != NULL)
		watch_free(watch);
}

void
kube_watch_stop(struct kube_watch *watch)
{
	if (watch == NULL)
		return;
	watch->stopped = true;
	if (watch->busy == 0)
		watch_free(watch);
}

static bool
watch_goes_on(const struct kube_watch *watch)
{
	return !watch->stopped && !watch->client->freed;
}

/* True: the watch is still there. */
static bool
watch_leave(struct kube_watch *watch)
{
	watch->busy--;
	if (watch->stopped && watch->busy == 0 && !watch->client->freed) {
		watch_free(watch);
		return false;
	}
	return watch_goes_on(watch);
}

static void
watch_set_version(struct kube_watch *watch, struct json_object *metadata)
{
	const char *version = kube_json_text(metadata, "resourceVersion");

	if (version[0] == '\0')
		return;
	free(watch->version);
	watch->version = alloc_string(version);
}

static void
watch_forget_version(struct kube_watch *watch)
{
	free(STEAL_PTR(watch->version));
}

/* 0: nothing forbids to list now. */
static int64_t
list_wait_ms(const struct kube_watch *watch)
{
	int64_t wait = watch->listed_ms + watch->client->options.list_ms - clock_boot_ms();

	return watch->version == NULL && watch->listed_ms != 0 && wait > 0 ? wait : 0;
}

/* why NULL: the stream ended as streams do. */
static void
watch_pause(struct kube_watch *watch, const struct err *why, int64_t retry_after_ms)
{
	int64_t now = clock_boot_ms(), pause = 0;
	bool lasted = watch->stream_ms != 0 && now - watch->stream_ms >= LASTING_MS;
	struct timeval tv;

	watch->client->stats.restarts++;
	watch->stream_ms = 0;
	if (lasted)
		watch->backoff.tries = 0;
	if (retry_after_ms > RETRY_AFTER_MAX_MS)
		retry_after_ms = RETRY_AFTER_MAX_MS;
	if (!lasted || why != NULL)
		pause = kube_backoff_next(&watch->backoff, retry_after_ms);
	/* A version that nothing comes of may be one that the server will never know. */
	if (why != NULL && watch->backoff.tries != 0 && watch->backoff.tries % TRIES_MAX == 0)
		watch_forget_version(watch);
	if (pause < list_wait_ms(watch))
		pause = list_wait_ms(watch);
	tv = clock_tv(pause);
	event_add(watch->pause, &tv);
	if (why != NULL && watch_goes_on(watch))
		watch->ops->trouble(watch->arg, why);
}

static void
watch_tell_reset(struct kube_watch *watch)
{
	if (watch->reset_told)
		return;
	watch->reset_told = true;
	if (watch_goes_on(watch))
		watch->ops->reset(watch->arg);
}

static void
list_on_again(void *arg)
{
	struct kube_watch *watch = arg;

	watch->reset_told = false;
}

static void
list_on_item(void *arg, struct json_object *item)
{
	struct kube_watch *watch = arg;

	watch->busy++;
	watch_tell_reset(watch);
	if (watch_goes_on(watch))
		watch->ops->object(watch->arg, KUBE_ADDED, item);
	watch_leave(watch);
}

static void watch_stream(struct kube_watch *watch);

static void
list_on_done(void *arg, const char *resource_version, const struct err *why)
{
	struct kube_watch *watch = arg;
	int64_t retry_after_ms = kube_list_retry_after(watch->list);

	watch->list = NULL;
	watch->busy++;
	if (why != NULL) {
		watch_pause(watch, why, retry_after_ms);
		watch_leave(watch);
		return;
	}
	watch->version = alloc_string(resource_version);
	watch_tell_reset(watch);
	if (watch_goes_on(watch))
		watch->ops->synced(watch->arg);
	if (watch_leave(watch))
		watch_stream(watch);
}

static const struct kube_list_ops list_ops = { list_on_again, list_on_item, list_on_done };

static void
watch_list(struct kube_watch *watch)
{
	struct kube_list_ask ask = { .path = watch->path, .selector = watch->selector };

	watch->listed_ms = clock_boot_ms();
	watch->reset_told = false;
	watch->list = kube_list_start(watch->client, &ask, &list_ops, watch);
	kube_list_once(watch->list);
}

/* Ends the stream before the server does. */
static void
stream_break(struct kube_watch *watch, const struct err *why)
{
	kube_attempt_cancel(&watch->attempt);
	kube_lines_clear(&watch->lines);
	watch_pause(watch, why, -1);
}

static void
stream_refused(struct kube_watch *watch, struct json_object *status)
{
	struct json_object *code = NULL;
	int http_status = 500;
	struct err err;

	if (status != NULL && json_object_object_get_ex(status, "code", &code))
		http_status = json_object_get_int(code);
	kube_status_err(http_status, status, &err);
	if (http_status == 410 || strcmp(kube_status_reason(status), "Expired") == 0)
		watch_forget_version(watch);
	stream_break(watch, &err);
}

static bool
stream_take(struct kube_watch *watch, const char *type, struct json_object *object)
{
	static const char *const names[] = { "ADDED", "MODIFIED", "DELETED" };

	if (strcmp(type, "ERROR") == 0) {
		stream_refused(watch, object);
		return false;
	}
	if (strcmp(type, "BOOKMARK") == 0) {
		watch_set_version(watch, kube_json_object(object, "metadata"));
		return true;
	}
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (strcmp(type, names[i]) != 0 || object == NULL)
			continue;
		watch_set_version(watch, kube_json_object(object, "metadata"));
		watch->ops->object(watch->arg, (enum kube_change)i, object);
	}
	return watch_goes_on(watch);
}

static bool
stream_on_line(void *arg, const char *line, size_t len)
{
	struct kube_watch *watch = arg;
	AUTO_JSON struct json_object *event = kube_json_parse(line, len);
	struct err err;

	if (event != NULL)
		return stream_take(watch, kube_json_text(event, "type"), kube_json_object(event, "object"));
	err_set(&err, ERR_UNAVAILABLE, "a line of the watch is no JSON");
	stream_break(watch, &err);
	return false;
}

static void
stream_on_input(void *arg, const char *data, size_t len)
{
	struct kube_watch *watch = arg;
	struct err err;

	watch->busy++;
	if (kube_lines_feed(&watch->lines, data, len, stream_on_line, watch, &err) != 0)
		stream_break(watch, &err);
	watch_leave(watch);
}

static void
stream_on_end(void *arg, const struct kube_end *end)
{
	struct kube_watch *watch = arg;
	bool cut = kube_lines_clear(&watch->lines);
	struct err err;
	const struct err *why = end->why;

	watch->busy++;
	if (why == NULL && end->status != 200) {
		AUTO_JSON struct json_object *body = kube_json_parse(end->text, end->len);

		kube_status_err(end->status, body, &err);
		why = &err;
		if (end->status == 410)
			watch_forget_version(watch);
		else if (end->status == 401)
			(void)kube_attempt_refused(&watch->attempt);
	} else if (why == NULL && cut) {
		err_set(&err, ERR_UNAVAILABLE, "the watch ended within a line");
		why = &err;
	}
	watch_pause(watch, why, end->retry_after_ms);
	watch_leave(watch);
}

static const struct kube_exchange_ops stream_ops = { stream_on_input, stream_on_end };

static void
watch_stream(struct kube_watch *watch)
{
	uint32_t silence_ms = watch->client->options.silence_ms;
	uint32_t seconds = silence_ms / 1000 > 2 * GRACE_S ? silence_ms / 1000 - GRACE_S : silence_ms / 2000 + 1;
	AUTO_FREE char *version = kube_escape(watch->version);
	AUTO_FREE char *selector = watch->selector != NULL ? kube_escape(watch->selector) : NULL;

	free(watch->stream_path);
	watch->stream_path = alloc_format(
		"%s?watch=true&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%u%s%s", watch->path,
		version, seconds, selector != NULL ? "&labelSelector=" : "", selector != NULL ? selector : "");
	watch->attempt.send = (struct kube_send){
		.method = KUBE_GET, .path = watch->stream_path, .stream = true, .silence_ms = silence_ms
	};
	watch->stream_ms = clock_boot_ms();
	kube_attempt_start(&watch->attempt);
}

static void
watch_on_pause(evutil_socket_t fd, short what, void *arg)
{
	struct kube_watch *watch = arg;
	struct timeval wait = clock_tv(list_wait_ms(watch));

	(void)fd;
	(void)what;
	/* The loop's clock may be a little behind. */
	if (evutil_timerisset(&wait))
		event_add(watch->pause, &wait);
	else if (watch->version == NULL)
		watch_list(watch);
	else
		watch_stream(watch);
}

struct kube_watch *
kube_watch_start(struct kube_client *client, const char *path, const char *selector,
	const struct kube_watch_ops *ops, void *arg)
{
	struct kube_watch *watch = alloc_zero(1, sizeof *watch);

	watch->client = client;
	watch->path = alloc_string(path);
	watch->selector = selector != NULL ? alloc_string(selector) : NULL;
	watch->ops = ops;
	watch->arg = arg;
	watch->lines.max = client->options.max_bytes;
	watch->backoff = (struct kube_backoff){ .first_ms = client->options.pause_ms, .max_ms = PAUSE_MAX_MS };
	watch->attempt = (struct kube_attempt){ .client = client, .ops = &stream_ops, .arg = watch };
	watch->pause = must_alloc(event_new(client->base, -1, 0, watch_on_pause, watch));
	TAILQ_INSERT_TAIL(&client->watches, watch, entry);
	watch_list(watch);
	return watch;
}
