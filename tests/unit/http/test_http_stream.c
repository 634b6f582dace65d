/* test_http_stream.c - bodies and answers that pass piece by piece, against the real server of http_rig.h. */
/* SPDX-License-Identifier: MIT */
#include "http_rig.h"

#include "base/clock.h"
#include "base/err.h"
#include "http/http_client.h"
#include "http/http_parser.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>

enum { PIECE = 64 * 1024 };

/* Where a callback cancels the call. */
enum moment { NEVER, AT_WANTED, AT_DRAINED, AT_HEAD, AT_DATA };

struct flow {
	struct rig rig; /* first */
	struct http_pool *pool;
	struct http_call *call; /* NULL: gone */
	enum moment cancel_at;
	size_t to_send, queued_most;
	bool endless; /* to_send never ends */
	size_t take; /* bytes of the answer that are taken before it stops */
	size_t got;
	char text[64]; /* the first of them */
	int wanted, drained, heads, ended, failed;
	int status;
	struct err why;
	enum http_sent sent;
};

static int
setup(void **state)
{
	struct flow *flow = calloc(1, sizeof *flow);

	if (flow == NULL)
		return -1;
	flow->rig.tcp = true;
	flow->take = SIZE_MAX;
	*state = flow;
	return 0;
}

static int
teardown(void **state)
{
	struct flow *flow = *state;

	http_pool_free(flow->pool);
	rig_stop(&flow->rig);
	free(flow);
	return 0;
}

static void
flow_start(struct flow *flow)
{
	struct sockaddr_in addr;
	socklen_t len = sizeof addr;
	char endpoint[64];
	struct http_pool_options options = { endpoint, 2, 10000, 1000 };
	struct err err;

	rig_start(&flow->rig);
	assert_int_equal(getsockname(flow->rig.listen_fd, (struct sockaddr *)&addr, &len), 0);
	snprintf(endpoint, sizeof endpoint, "tcp:127.0.0.1:%u", ntohs(addr.sin_port));
	assert_int_equal(http_pool_create(flow->rig.base, &options, &flow->pool, &err), 0);
}

static bool
flow_cancels(struct flow *flow, enum moment now)
{
	if (flow->cancel_at != now)
		return false;
	http_call_cancel(flow->call);
	flow->call = NULL;
	return true;
}

/* As much as may be queued. */
static void
flow_send(struct flow *flow)
{
	static const char zeros[PIECE];
	struct evbuffer *piece = evbuffer_new();
	size_t queued = 0;

	while (flow->to_send > 0 && queued <= HTTP_CALL_HIGH) {
		size_t len = flow->to_send < PIECE ? flow->to_send : PIECE;

		evbuffer_add(piece, zeros, len);
		queued = http_call_send(flow->call, piece);
		assert_int_equal(evbuffer_get_length(piece), 0);
		if (queued > flow->queued_most)
			flow->queued_most = queued;
		if (!flow->endless)
			flow->to_send -= len;
	}
	evbuffer_free(piece);
	if (flow->to_send == 0)
		http_call_send_end(flow->call);
}

static void
on_wanted(void *arg)
{
	struct flow *flow = arg;

	flow->wanted++;
	if (!flow_cancels(flow, AT_WANTED))
		flow_send(flow);
}

static void
on_drained(void *arg)
{
	struct flow *flow = arg;

	flow->drained++;
	if (!flow_cancels(flow, AT_DRAINED))
		flow_send(flow);
}

static void
on_head(const struct http_head *head, void *arg)
{
	struct flow *flow = arg;

	flow->heads++;
	flow->status = http_head_status(head);
	flow_cancels(flow, AT_HEAD);
}

static void
on_data(struct evbuffer *data, void *arg)
{
	struct flow *flow = arg;
	size_t len = evbuffer_get_length(data), room = flow->take > flow->got ? flow->take - flow->got : 0;

	if (len > room)
		len = room;
	if (flow->got < sizeof flow->text - 1)
		evbuffer_copyout(data, flow->text + flow->got, sizeof flow->text - 1 - flow->got);
	evbuffer_drain(data, len);
	flow->got += len;
	flow_cancels(flow, AT_DATA);
}

static void
on_end(void *arg)
{
	struct flow *flow = arg;

	flow->call = NULL;
	flow->ended++;
}

static void
on_failed(const struct err *why, enum http_sent sent, void *arg)
{
	struct flow *flow = arg;

	flow->call = NULL;
	flow->why = *why;
	flow->sent = sent;
	flow->failed++;
}

/* length: as in struct http_stream; a body waits for 100 Continue. */
static void
flow_call(struct flow *flow, const char *method, const char *target, int64_t length, int64_t stall_ms)
{
	struct http_stream stream = {
		.length = length,
		.ask_first = length != 0,
		.stall_ms = stall_ms,
		.wanted = on_wanted,
		.drained = on_drained,
		.head = on_head,
		.data = on_data,
		.end = on_end,
	};
	struct http_call_options options = {
		.method = method,
		.target = target,
		.stream = &stream,
		.failed = on_failed,
		.arg = flow,
	};
	struct err err;

	assert_int_equal(http_call_start(flow->pool, &options, &flow->call, &err), 0);
}

/* Turns the loop for a while in which nothing may happen. */
static void
flow_idle(struct flow *flow, int64_t ms)
{
	for (int64_t end = clock_boot_ms() + ms; clock_boot_ms() < end;)
		rig_spin(&flow->rig);
}

static void
test_a_body_of_known_length(void **state)
{
	struct flow *flow = *state;

	flow_start(flow);
	flow->to_send = 3000000;
	flow_call(flow, "PUT", "/up", 3000000, 0);
	assert_true(rig_wait(&flow->rig, &flow->ended, 1));
	assert_int_equal(flow->status, 200);
	assert_string_equal(flow->text, "3000000 bytes");
	assert_int_equal(flow->wanted, 1);
	assert_true(flow->queued_most <= HTTP_CALL_HIGH + PIECE);
}

static void
test_a_chunked_body(void **state)
{
	struct flow *flow = *state;

	flow_start(flow);
	flow->to_send = 3000001;
	flow_call(flow, "PUT", "/up", -1, 0);
	assert_true(rig_wait(&flow->rig, &flow->ended, 1));
	assert_string_equal(flow->text, "3000001 bytes");
}

static void
test_only_calls_without_a_body_take_a_used_connection(void **state)
{
	struct flow *flow = *state;

	flow_start(flow);
	for (int i = 1; i <= 3; i++) {
		flow_call(flow, "GET", "/down?300000", 0, 0);
		assert_true(rig_wait(&flow->rig, &flow->ended, i));
		assert_int_equal(flow->rig.opened, 1);
	}
	assert_int_equal(flow->got, 900000);
	flow->to_send = 1;
	flow_call(flow, "PUT", "/up", 1, 0);
	assert_true(rig_wait(&flow->rig, &flow->ended, 4));
	assert_int_equal(flow->rig.opened, 2);
}

static void
test_an_answer_without_the_body_ends_its_connection(void **state)
{
	struct flow *flow = *state;

	flow_start(flow);
	flow->to_send = 1000;
	flow_call(flow, "PUT", "/now", 1000, 0);
	assert_true(rig_wait(&flow->rig, &flow->ended, 1));
	assert_string_equal(flow->text, "hello");
	assert_int_equal(flow->wanted, 0);
	flow_call(flow, "GET", "/now", 0, 0);
	assert_true(rig_wait(&flow->rig, &flow->ended, 2));
	assert_int_equal(flow->rig.requests, 2);
}

static void
test_an_answer_waits_for_its_reader(void **state)
{
	struct flow *flow = *state;

	flow->take = 100000;
	flow_start(flow);
	flow_call(flow, "GET", "/down?50000000", 0, 100);
	flow_idle(flow, 300); /* longer than the stall: it is we who wait */
	assert_int_equal(flow->got, 100000);
	assert_int_equal(flow->failed + flow->ended, 0);
	assert_true(flow->rig.down_left > 20000000);
	assert_true(flow->rig.down_queued < 400 * 1024);
	flow->take = SIZE_MAX;
	http_call_resume(flow->call);
	assert_true(rig_wait(&flow->rig, &flow->ended, 1));
	assert_int_equal(flow->got, 50000000);
	assert_int_equal(flow->heads, 1);
}

static void
test_a_body_waits_for_who_takes_it(void **state)
{
	struct flow *flow = *state;

	flow_start(flow);
	flow->to_send = 50000000;
	flow_call(flow, "PUT", "/hold", 50000000, 0);
	flow_idle(flow, 200);
	assert_true(flow->to_send > 20000000);
	assert_true(flow->queued_most <= HTTP_CALL_HIGH + PIECE);
	flow->rig.take = true;
	http_exchange_resume(flow->rig.exchange);
	assert_true(rig_wait(&flow->rig, &flow->ended, 1));
	assert_string_equal(flow->text, "50000000 bytes");
	assert_true(flow->drained > 0);
}

static void
test_who_is_silent_on_his_turn_is_given_up(void **state)
{
	struct flow *flow = *state;

	flow_start(flow);
	flow_call(flow, "GET", "/wait", 0, 100);
	assert_true(rig_wait(&flow->rig, &flow->failed, 1));
	assert_int_equal(flow->sent, HTTP_MAYBE_SENT);
	assert_int_equal(flow->why.code, ERR_TIMEOUT);
	flow->to_send = PIECE;
	flow->endless = true;
	flow_call(flow, "PUT", "/hold", -1, 100);
	assert_true(rig_wait(&flow->rig, &flow->failed, 2));
	assert_int_equal(flow->why.code, ERR_TIMEOUT);
}

static void
test_a_cut_answer_fails(void **state)
{
	struct flow *flow = *state;

	flow->take = 1000;
	flow_start(flow);
	flow_call(flow, "GET", "/down?50000000", 0, 0);
	assert_true(rig_wait(&flow->rig, &flow->heads, 1));
	flow_idle(flow, 50);
	http_exchange_abort(flow->rig.exchange);
	flow->take = SIZE_MAX;
	http_call_resume(flow->call);
	assert_true(rig_wait(&flow->rig, &flow->failed, 1));
	assert_int_equal(flow->ended, 0);
	assert_true(flow->got < 50000000);
}

static void
test_any_callback_may_cancel(void **state)
{
	struct flow *flow = *state;

	flow_start(flow);
	for (enum moment at = AT_WANTED; at <= AT_DATA; at++) {
		flow->cancel_at = at;
		flow->to_send = 10000000;
		flow_call(flow, at < AT_HEAD ? "PUT" : "GET", at < AT_HEAD ? "/up" : "/down?10000000",
			at < AT_HEAD ? -1 : 0, 0);
		assert_true(rig_wait(&flow->rig, &flow->rig.gone, (int)at));
		assert_null(flow->call);
	}
	assert_int_equal(flow->ended + flow->failed, 0);
	assert_int_equal(http_pool_calls(flow->pool), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_body_of_known_length),
		TEST(test_a_chunked_body),
		TEST(test_only_calls_without_a_body_take_a_used_connection),
		TEST(test_an_answer_without_the_body_ends_its_connection),
		TEST(test_an_answer_waits_for_its_reader),
		TEST(test_a_body_waits_for_who_takes_it),
		TEST(test_who_is_silent_on_his_turn_is_given_up),
		TEST(test_a_cut_answer_fails),
		TEST(test_any_callback_may_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
