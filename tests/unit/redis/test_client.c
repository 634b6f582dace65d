/* test_client.c - the client with a server that misbehaves: late, half, wrong, mute, unasked. */
/* SPDX-License-Identifier: MIT */
#include "redis_rig.h"

#include "base/err.h"
#include "redis/client.h"
#include "redis/url.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>

/* A server in the same loop, which says what the test wants. */
struct ctx {
	struct event_base *base;
	struct evconnlistener *listener;
	struct bufferevent *peer; /* the last connection */
	struct redis_url url;
	struct redis *redis;
	bool greets; /* answers PING and ROLE */
	const char *info; /* and then INFO, and takes the write that tries it */
	unsigned connections, ups, downs;
	size_t received; /* bytes after the greeting */
};

struct seen {
	struct ctx *ctx;
	unsigned count;
	enum redis_kind kind;
	int64_t number;
	char text[64];
	bool frees, sends;
};

static void
peer_say(struct ctx *ctx, const char *text)
{
	bufferevent_write(ctx->peer, text, strlen(text));
}

static void
peer_on_input(struct bufferevent *peer, void *arg)
{
	struct ctx *ctx = arg;
	struct evbuffer *in = bufferevent_get_input(peer);

	if (ctx->greets && evbuffer_search(in, "ROLE\r\n", 6, NULL).pos >= 0) {
		evbuffer_drain(in, evbuffer_get_length(in));
		peer_say(ctx, "+PONG\r\n*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
		if (ctx->info != NULL)
			peer_say(ctx, ctx->info);
		return;
	}
	if (!ctx->greets)
		return;
	ctx->received += evbuffer_get_length(in);
	evbuffer_drain(in, evbuffer_get_length(in));
}

static void
on_connection(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int size, void *arg)
{
	struct ctx *ctx = arg;

	(void)listener;
	(void)address;
	(void)size;
	if (ctx->peer != NULL)
		bufferevent_free(ctx->peer);
	ctx->connections++;
	ctx->peer = bufferevent_socket_new(ctx->base, fd, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(ctx->peer, peer_on_input, NULL, NULL, ctx);
	bufferevent_enable(ctx->peer, EV_READ | EV_WRITE);
}

static void
on_change(void *arg, bool up)
{
	struct ctx *ctx = arg;

	ctx->ups += up;
	ctx->downs += !up;
}

static void
ctx_start(struct ctx *ctx, const struct redis_options *options)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct redis_options whole = *options;
	socklen_t size = sizeof address;
	struct err err;
	char url[64];

	ctx->base = event_base_new();
	ctx->listener = evconnlistener_new_bind(ctx->base, on_connection, ctx,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 16, (struct sockaddr *)&address, sizeof address);
	assert_non_null(ctx->listener);
	assert_int_equal(getsockname(evconnlistener_get_fd(ctx->listener), (struct sockaddr *)&address, &size), 0);
	snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(address.sin_port));
	assert_int_equal(redis_url_parse(url, &ctx->url, &err), 0);
	whole.url = &ctx->url;
	ctx->redis = redis_new(ctx->base, &whole);
	redis_on_change(ctx->redis, on_change, ctx);
}

static void
ctx_start_up(struct ctx *ctx, uint32_t silence_ms)
{
	*ctx = (struct ctx){ .greets = true };
	ctx_start(ctx,
		&(struct redis_options){ .silence_ms = silence_ms, .max_commands = 100, .max_bytes = 1 << 20 });
	rig_until_count(ctx->base, &ctx->ups, 1);
}

static void
ctx_stop(struct ctx *ctx)
{
	redis_free(ctx->redis);
	if (ctx->peer != NULL)
		bufferevent_free(ctx->peer);
	evconnlistener_free(ctx->listener);
	event_base_free(ctx->base);
}

static int send_get(struct ctx *ctx, struct seen *seen, uint32_t deadline_ms, struct err *err);

static void
on_answer(void *arg, const struct redis_answer *answer)
{
	struct seen *seen = arg;
	struct err err;

	seen->count++;
	seen->kind = answer->kind;
	seen->number = answer->number;
	if (answer->text != NULL)
		snprintf(seen->text, sizeof seen->text, "%s", answer->text);
	if (seen->sends && send_get(seen->ctx, seen, 0, &err) == 0)
		seen->sends = false;
	if (seen->frees) {
		redis_free(seen->ctx->redis);
		seen->ctx->redis = NULL;
	}
}

static int
send_get(struct ctx *ctx, struct seen *seen, uint32_t deadline_ms, struct err *err)
{
	struct redis_args args;

	redis_args_init(&args);
	redis_args_text(&args, "GET");
	redis_args_text(&args, "k");
	return redis_send(ctx->redis, &args, (struct redis_reply_to){ on_answer, seen, deadline_ms }, err);
}

static void
get(struct ctx *ctx, struct seen *seen, uint32_t deadline_ms)
{
	struct err err;

	if (send_get(ctx, seen, deadline_ms, &err) != 0)
		fail_msg("%s", err.msg);
}

static void
test_a_late_answer_is_for_nobody(void **state)
{
	struct ctx ctx;
	struct seen late = { 0 }, next = { 0 };

	(void)state;
	ctx_start_up(&ctx, 60000);
	get(&ctx, &late, 20);
	rig_until_count(ctx.base, &late.count, 1);
	assert_int_equal(late.kind, REDIS_LATE);
	get(&ctx, &next, 60000);
	peer_say(&ctx, "$5\r\nfirst\r\n$6\r\nsecond\r\n");
	rig_until_count(ctx.base, &next.count, 1);
	assert_string_equal(next.text, "second");
	assert_int_equal(late.count, 1);
	assert_int_equal(ctx.downs, 0);
	ctx_stop(&ctx);
}

static void
test_halves_of_answers_wait_for_the_rest(void **state)
{
	static const char whole[] = "*2\r\n$2\r\nab\r\n:7\r\n+OK\r\n-ERR no\r\n$-1\r\n:42\r\n";
	struct ctx ctx;
	struct seen seen[5] = { 0 };

	(void)state;
	ctx_start_up(&ctx, 60000);
	for (int i = 0; i < 5; i++)
		get(&ctx, &seen[i], 60000);
	for (const char *c = whole; *c != '\0'; c++) {
		bufferevent_write(ctx.peer, c, 1);
		event_base_loop(ctx.base, EVLOOP_ONCE);
	}
	rig_until_count(ctx.base, &seen[4].count, 1);
	assert_int_equal(seen[0].kind, REDIS_ARRAY);
	assert_int_equal(seen[1].kind, REDIS_STRING);
	assert_int_equal(seen[2].kind, REDIS_ERROR);
	assert_int_equal(seen[3].kind, REDIS_NIL);
	assert_int_equal(seen[4].number, 42);
	ctx_stop(&ctx);
}

static void
expect_down_after(const char *said, const char *problem)
{
	struct ctx ctx;
	struct seen seen = { 0 };

	ctx_start_up(&ctx, 60000);
	get(&ctx, &seen, 60000);
	peer_say(&ctx, said);
	rig_until_count(ctx.base, &ctx.downs, 1);
	assert_int_equal(seen.count, 1);
	assert_non_null(strstr(redis_problem(ctx.redis), problem));
	rig_until_count(ctx.base, &ctx.ups, 2);
	ctx_stop(&ctx);
}

static void
test_what_ends_a_connection(void **state)
{
	(void)state;
	expect_down_after("HTTP/1.1 400 Bad Request\r\n", "protocol");
	expect_down_after("+OK\r\n+OK\r\n", "nobody had asked");
	expect_down_after("-READONLY You can't write against a read only replica.\r\n", "READONLY");
	expect_down_after("-LOADING Redis is loading the dataset in memory\r\n", "LOADING");
	expect_down_after("-ERR Error running script: @user_script:1: -READONLY You can't write\r\n", "READONLY");
	expect_down_after("-NOREPLICAS Not enough good replicas to write.\r\n", "NOREPLICAS");
}

static void
test_errors_that_only_sound_like_it(void **state)
{
	struct ctx ctx;
	struct seen seen = { 0 };

	(void)state;
	ctx_start_up(&ctx, 60000);
	get(&ctx, &seen, 60000);
	peer_say(&ctx, "-ERR unknown command 'NOTREADONLY'\r\n");
	rig_until_count(ctx.base, &seen.count, 1);
	assert_int_equal(seen.kind, REDIS_ERROR);
	assert_true(redis_is_up(ctx.redis));
	ctx_stop(&ctx);
}

static void
test_silence_ends_it_and_tells_all(void **state)
{
	struct ctx ctx;
	struct seen seen[3] = { 0 };

	(void)state;
	ctx_start_up(&ctx, 100);
	for (int i = 0; i < 3; i++)
		get(&ctx, &seen[i], 0);
	rig_until_count(ctx.base, &ctx.downs, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(seen[i].kind, REDIS_LOST);
	rig_until_count(ctx.base, &ctx.connections, 2);
	ctx_stop(&ctx);
}

static void
test_a_mute_server_never_is_up(void **state)
{
	struct ctx ctx = { .greets = false };

	(void)state;
	ctx_start(&ctx, &(struct redis_options){ .connect_ms = 50 });
	rig_until_count(ctx.base, &ctx.connections, 3);
	assert_int_equal(ctx.ups + ctx.downs, 0);
	assert_false(redis_is_up(ctx.redis));
	ctx_stop(&ctx);
}

static void
test_what_waits_is_bounded(void **state)
{
	struct ctx ctx;
	struct seen seen = { 0 };
	struct redis_args args;
	struct err err;
	static char big[2 << 20];

	(void)state;
	ctx_start_up(&ctx, 60000);
	redis_args_init(&args);
	redis_args_text(&args, "ECHO");
	redis_args_bytes(&args, big, sizeof big);
	assert_int_equal(redis_send(ctx.redis, &args, (struct redis_reply_to){ on_answer, &seen, 0 }, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	for (int i = 0; i < 100; i++)
		get(&ctx, &seen, 1);
	rig_until_count(ctx.base, &seen.count, 100);
	/* They were given up, but their answers are still to come. */
	assert_int_equal(send_get(&ctx, &seen, 0, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	for (int i = 0; i < 100; i++)
		peer_say(&ctx, "$-1\r\n");
	while (send_get(&ctx, &seen, 0, &err) != 0)
		event_base_loop(ctx.base, EVLOOP_ONCE);
	ctx_stop(&ctx);
}

static void
test_the_forgotten_are_not_told(void **state)
{
	struct ctx ctx;
	struct seen gone = { 0 }, stays = { 0 };

	(void)state;
	ctx_start_up(&ctx, 60000);
	get(&ctx, &gone, 60000);
	get(&ctx, &stays, 60000);
	get(&ctx, &gone, 1);
	redis_forget(ctx.redis, &gone);
	peer_say(&ctx, "$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
	rig_until_count(ctx.base, &stays.count, 1);
	assert_string_equal(stays.text, "b");
	bufferevent_free(ctx.peer);
	ctx.peer = NULL;
	rig_until_count(ctx.base, &ctx.downs, 1);
	assert_int_equal(gone.count, 0);
	ctx_stop(&ctx);
}

/* From an answer, a late one, and a loss. */
static void
test_a_callback_may_free_or_send(void **state)
{
	static const char *const said[] = { "$1\r\na\r\n$1\r\nb\r\n", "", "garbage\r\n", NULL };

	(void)state;
	for (const char *const *text = said; *text != NULL; text++) {
		struct ctx ctx;
		struct seen frees = { .ctx = &ctx, .frees = true }, sends = { .ctx = &ctx, .sends = true };
		struct seen never = { 0 };

		ctx_start_up(&ctx, 60000);
		get(&ctx, &sends, **text == '\0' ? 1 : 60000);
		get(&ctx, &frees, **text == '\0' ? 2 : 60000);
		get(&ctx, &never, 60000);
		peer_say(&ctx, *text);
		rig_until_count(ctx.base, &frees.count, 1);
		assert_int_equal(sends.count, 1);
		assert_int_equal(never.count, 0);
		ctx_stop(&ctx);
	}
}

/* Its scripts' keys would be on several servers. */
static void
test_a_cluster_is_refused(void **state)
{
	struct ctx ctx = { .greets = true, .info = "$21\r\nredis_mode:standalone\r\n$0\r\n\r\n+OK\r\n" };

	(void)state;
	ctx_start(&ctx, &(struct redis_options){ .probe = "probe" });
	rig_until_count(ctx.base, &ctx.ups, 1);
	ctx.info = "$18\r\nredis_mode:cluster\r\n$0\r\n\r\n+OK\r\n";
	bufferevent_free(ctx.peer);
	ctx.peer = NULL;
	rig_until_problem(ctx.base, ctx.redis, "Redis Cluster");
	assert_int_equal(ctx.ups, 1);
	ctx_stop(&ctx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_late_answer_is_for_nobody),
		cmocka_unit_test(test_halves_of_answers_wait_for_the_rest),
		cmocka_unit_test(test_what_ends_a_connection),
		cmocka_unit_test(test_errors_that_only_sound_like_it),
		cmocka_unit_test(test_silence_ends_it_and_tells_all),
		cmocka_unit_test(test_a_mute_server_never_is_up),
		cmocka_unit_test(test_a_cluster_is_refused),
		cmocka_unit_test(test_what_waits_is_bounded),
		cmocka_unit_test(test_the_forgotten_are_not_told),
		cmocka_unit_test(test_a_callback_may_free_or_send),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
