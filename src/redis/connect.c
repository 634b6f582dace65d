/*
 * connect.c - connections to Redis: made, read from, watched, ended, made again.
 *
 * A connection is up from the end of its greeting. One that owes an answer and says nothing is as good as none, so it
 * is ended and everybody told, instead of each waiting for a deadline of its own; an idle one is asked now and then.
 */
/* SPDX-License-Identifier: MIT */
#include "redis/answer_impl.h"
#include "redis/client_impl.h"
#include "redis/lookup.h"
#include "redis/url.h"

#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <hiredis/hiredis.h>

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 2000, LASTING_MS = 5000, READ_PIECE = 64 * 1024 };

static void
connect_end(struct redis *redis)
{
	if (redis->lookup != NULL)
		redis_lookup_cancel(STEAL_PTR(redis->lookup));
	if (redis->bev != NULL)
		bufferevent_free(STEAL_PTR(redis->bev));
	if (redis->reader != NULL)
		redisReaderFree(STEAL_PTR(redis->reader));
	event_del(redis->watch);
}

/* What was given just before the end, as far as the socket takes it. */
static void
connect_flush(struct redis *redis)
{
	struct evbuffer *out = redis_output(redis);

	evbuffer_unfreeze(out, 1);
	while (evbuffer_get_length(out) > 0 && evbuffer_write(out, bufferevent_getfd(redis->bev)) > 0)
		;
}

void
redis_connect_stop(struct redis *redis)
{
	if (redis->state == REDIS_UP)
		connect_flush(redis);
	redis->state = REDIS_DOWN;
	connect_end(redis);
	event_free(redis->retry);
	event_free(redis->watch);
}

/* Half of the pause and up to another half: many clients of one Redis do not come back all at once. */
static int64_t
backoff_ms(struct redis *redis)
{
	int64_t pause = BACKOFF_FIRST_MS;
	uint32_t dice = 0;

	for (uint32_t i = 0; i < redis->tries && pause < BACKOFF_MAX_MS; i++)
		pause *= 2;
	if (pause > BACKOFF_MAX_MS)
		pause = BACKOFF_MAX_MS;
	redis->tries++;
	if (getrandom(&dice, sizeof dice, GRND_NONBLOCK) != sizeof dice)
		dice = (uint32_t)clock_boot_us();
	return pause / 2 + (int64_t)(dice % (uint32_t)(pause / 2 + 1));
}

void
redis_down(struct redis *redis, const char *format, ...)
{
	bool was_up = redis->state == REDIS_UP;
	struct timeval pause;
	va_list ap;

	redis->state = REDIS_DOWN;
	va_start(ap, format);
	vsnprintf(redis->problem, sizeof redis->problem, format, ap);
	va_end(ap);
	connect_end(redis);
	if (was_up && clock_boot_ms() - redis->up_ms >= LASTING_MS)
		redis->tries = 0;
	pause = clock_tv(backoff_ms(redis));
	event_add(redis->retry, &pause);
	redis_lose_all(redis);
	if (was_up)
		redis_tell_change(redis, false);
}

static void
watch_start(struct redis *redis, int64_t ms)
{
	struct timeval tv = clock_tv(ms);

	event_add(redis->watch, &tv);
}

void
redis_up(struct redis *redis)
{
	redis->state = REDIS_UP;
	redis->up_ms = clock_boot_ms();
	redis->stats.connects++;
	redis->refusal_ms = 0;
	watch_start(redis, redis->options.silence_ms);
	redis_tell_change(redis, true);
}

static void
ask_for_life(struct redis *redis)
{
	struct redis_args args;

	redis_args_init(&args);
	redis_args_text(&args, "PING");
	redis_put(redis, &args, (struct redis_reply_to){ 0 });
}

/* A command that blocks in Redis has a deadline beyond that, which is how long silence is no news. */
static void
watch_silence(struct redis *redis)
{
	const struct redis_command *first = STAILQ_FIRST(&redis->commands);
	int64_t silence = redis->options.silence_ms, now = clock_boot_ms(), since = redis->input_ms;

	if (first != NULL) {
		if (first->sent_us / 1000 > since)
			since = first->sent_us / 1000;
		if (silence < (int64_t)first->to.deadline_ms)
			silence = (int64_t)first->to.deadline_ms;
	}
	if (now - since < silence)
		watch_start(redis, silence - (now - since));
	else if (first != NULL)
		redis_down(redis, "it has not answered for %lld ms", (long long)silence);
	else
		ask_for_life(redis);
}

static void
connect_on_watch(evutil_socket_t fd, short what, void *arg)
{
	struct redis *redis = arg;

	(void)fd;
	(void)what;
	if (redis->state == REDIS_UP)
		watch_silence(redis);
	else
		redis_down(redis, "%s within %u ms",
			redis->state == REDIS_GREETING ? "it did not answer" : "no connection came about",
			redis->options.connect_ms);
	redis_leave(redis);
}

static void
connect_take_answer(struct redis *redis, const struct redisReply *reply)
{
	struct redis_answer answer;
	bool away;

	if (STAILQ_EMPTY(&redis->commands)) {
		redis_down(redis, "it said something that nobody had asked for");
		return;
	}
	redis_answer_fill(&answer, reply);
	away = redis->state == REDIS_UP && redis_answer_is_away(&answer);
	redis_on_answer(redis, &answer);
	if (away && !redis->freed)
		redis_down(redis, "it refuses for now: %s", answer.text);
	redis_answer_clear(&answer);
}

/* Until there is no whole answer left, or one of those who were told has ended this connection. */
static void
connect_take_answers(struct redis *redis)
{
	void *reply = NULL;

	while (redis->reader != NULL && !redis->freed) {
		if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
			redis_down(redis, "it does not speak Redis' protocol: %s", redis->reader->errstr);
			return;
		}
		if (reply == NULL)
			return;
		connect_take_answer(redis, reply);
		freeReplyObject(reply);
	}
}

static void
connect_on_input(struct bufferevent *bev, void *arg)
{
	struct redis *redis = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	struct evbuffer_iovec piece;

	redis->input_ms = clock_boot_ms();
	while (evbuffer_peek(in, -1, NULL, &piece, 1) > 0) {
		if (redisReaderFeed(redis->reader, piece.iov_base, piece.iov_len) != REDIS_OK)
			abort();
		evbuffer_drain(in, piece.iov_len);
	}
	connect_take_answers(redis);
	redis_leave(redis);
}

static void
connect_on_event(struct bufferevent *bev, short what, void *arg)
{
	struct redis *redis = arg;

	if ((what & BEV_EVENT_CONNECTED) != 0) {
		bufferevent_enable(bev, EV_READ);
		redis_greet(redis);
	} else if ((what & BEV_EVENT_EOF) != 0) {
		redis_down(redis, "it closed the connection");
	} else {
		redis_down(redis, "%s", strerror(EVUTIL_SOCKET_ERROR()));
	}
	redis_leave(redis);
}

static void
connect_to(struct redis *redis, const struct sockaddr *address, socklen_t size)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0) {
		redis_down(redis, "socket: %s", strerror(errno));
		return;
	}
	if (address->sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	redis->reader = must_alloc(redisReaderCreate());
	redis->bev = must_alloc(bufferevent_socket_new(redis->base, fd, BEV_OPT_CLOSE_ON_FREE));
	bufferevent_set_max_single_read(redis->bev, READ_PIECE);
	bufferevent_setcb(redis->bev, connect_on_input, NULL, connect_on_event, redis);
	/* Refused, connect_on_event() is told of it; with no such socket or no way there nobody is. */
	if (bufferevent_socket_connect(redis->bev, address, (int)size) != 0 && redis->bev != NULL)
		redis_down(redis, "%s", strerror(errno));
}

static void
connect_on_address(void *ctx, const struct sockaddr *address, socklen_t size, const char *why)
{
	struct redis *redis = ctx;

	redis->lookup = NULL;
	if (address == NULL)
		redis_down(redis, "no address for %s: %s", redis->options.url->host, why);
	else
		connect_to(redis, address, size);
	redis_leave(redis);
}

static void
connect_to_path(struct redis *redis)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	memcpy(address.sun_path, redis->options.url->path, sizeof address.sun_path);
	connect_to(redis, (const struct sockaddr *)&address, sizeof address);
}

static void
connect_try(evutil_socket_t fd, short what, void *arg)
{
	struct redis *redis = arg;
	const struct redis_url *url = redis->options.url;
	struct redis_lookup_ask ask = {
		.host = url->host, .port = url->port, .turn = redis->tries, .fn = connect_on_address, .ctx = redis
	};
	struct redis_lookup *lookup;

	(void)fd;
	(void)what;
	redis->state = REDIS_CONNECTING;
	watch_start(redis, redis->options.connect_ms);
	if (url->host[0] == '\0') {
		connect_to_path(redis);
		return;
	}
	lookup = redis_lookup_start(redis->base, &ask);
	if (lookup != NULL)
		redis->lookup = lookup;
}

void
redis_connect_start(struct redis *redis)
{
	struct timeval now = { 0, 0 };

	redis->retry = must_alloc(event_new(redis->base, -1, 0, connect_try, redis));
	redis->watch = must_alloc(event_new(redis->base, -1, 0, connect_on_watch, redis));
	snprintf(redis->problem, sizeof redis->problem, "not connected yet");
	event_add(redis->retry, &now);
}
