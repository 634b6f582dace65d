/* test_call.c - requests: words of refusals, tries, slots, and what is never sent twice. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

/* What came of one call. */
struct told {
	bool done;
	int status;
	enum err_code code; /* ERR_NONE: 2xx */
	char words[512], reason[64], body[256];
	bool maybe_done;
	struct kube_client *free_this; /* in the callback */
};

struct fixture {
	struct rig rig;
	struct kube_config *config;
	struct kube_client *client;
	uint32_t stage; /* how the server answers, by the tests' own numbers */
};

static void
on_done(const struct kube_answer *answer, void *arg)
{
	struct told *told = arg;

	assert_false(told->done);
	told->done = true;
	told->status = answer->http_status;
	told->code = answer->why != NULL ? answer->why->code : ERR_NONE;
	snprintf(told->words, sizeof told->words, "%s", answer->why != NULL ? answer->why->msg : "");
	snprintf(told->reason, sizeof told->reason, "%s", answer->reason);
	snprintf(told->body, sizeof told->body, "%s", answer->body != NULL ? json_text(answer->body, NULL) : "");
	told->maybe_done = answer->maybe_done;
	kube_client_free(told->free_this);
}

static void
start(struct fixture *f, rig_f *handle, const char *user, struct kube_options options)
{
	struct err err;

	memset(f, 0, sizeof *f);
	rig_start(&f->rig, handle, f);
	f->config = rig_config(&f->rig, user);
	if (options.pause_ms == 0)
		options.pause_ms = 1;
	assert_int_equal(kube_client_create(f->rig.base, f->config, &options, &f->client, &err), 0);
}

static void
stop(struct fixture *f)
{
	kube_client_free(f->client);
	kube_config_free(f->config);
	rig_stop(&f->rig);
}

static struct kube_call *
call(struct fixture *f, enum kube_method method, const char *path, enum kube_retry retry, struct told *told)
{
	AUTO_JSON struct json_object *body = method == KUBE_GET
		? NULL
		: json_parse("{\"kind\":\"Thing\"}", strlen("{\"kind\":\"Thing\"}"), NULL);
	struct kube_request request = { .method = method, .path = path, .body = body, .retry = retry };
	struct kube_call *call;
	struct err err;

	memset(told, 0, sizeof *told);
	assert_int_equal(kube_call_start(f->client, &request, on_done, told, &call, &err), 0);
	return call;
}

static void
handle_plain(const struct rig_request *request, void *arg)
{
	(void)arg;
	if (strstr(request->line, "/echo") != NULL)
		rig_answer(request, 201, "", request->body);
	else if (strstr(request->line, "/empty") != NULL)
		rig_answer(request, 200, "", "");
	else if (strstr(request->line, "/quota") != NULL)
		rig_refuse(request, 403, "Forbidden", "");
	else if (strstr(request->line, "/taken") != NULL)
		rig_refuse(request, 409, "AlreadyExists", "");
	else if (strstr(request->line, "/proxy") != NULL)
		rig_answer(request, 403, "", "<html>no</html>");
	else if (strstr(request->line, "/html") != NULL)
		rig_answer(request, 200, "", "<html>yes</html>");
	else
		rig_refuse(request, 404, "NotFound", "");
}

static void
test_answers_come_as_they_are(void **state)
{
	struct fixture f;
	struct told told;

	(void)state;
	start(&f, handle_plain, "token: sesame", (struct kube_options){ .retries = 1 });
	call(&f, KUBE_POST, "/echo?a=%20b", KUBE_RETRY_NEVER, &told);
	assert_false(told.done);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.status, 201);
	assert_int_equal(told.code, ERR_NONE);
	assert_string_equal(told.body, "{\"kind\":\"Thing\"}");
	assert_string_equal(f.rig.log[0].line, "POST /echo?a=%20b");
	assert_string_equal(f.rig.log[0].token, "sesame");
	call(&f, KUBE_DELETE, "/empty", KUBE_RETRY_IDEMPOTENT, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_NONE);
	assert_string_equal(told.body, "");
	assert_int_equal(f.rig.connections, 1);
	stop(&f);
}

static void
test_refusals_come_in_words(void **state)
{
	struct fixture f;
	struct told told;

	(void)state;
	start(&f, handle_plain, NULL, (struct kube_options){ .retries = 1 });
	call(&f, KUBE_POST, "/quota", KUBE_RETRY_NEVER, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_DENIED);
	assert_string_equal(told.reason, "Forbidden");
	assert_non_null(strstr(told.words, "words of Forbidden"));
	assert_false(told.maybe_done);
	call(&f, KUBE_POST, "/taken", KUBE_RETRY_NEVER, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_EXISTS);
	call(&f, KUBE_GET, "/nosuch", KUBE_RETRY_READ, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_NOT_FOUND);
	call(&f, KUBE_GET, "/proxy", KUBE_RETRY_READ, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_DENIED);
	assert_non_null(strstr(told.words, "HTTP status 403"));
	call(&f, KUBE_POST, "/html", KUBE_RETRY_NEVER, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_UNAVAILABLE);
	assert_true(told.maybe_done);
	assert_int_equal(f.rig.requests, 5);
	stop(&f);
}

/* 429 and a refused connection: surely not carried out, so that even a create is tried again. */
static void
handle_throttle(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (request->number < f->stage)
		rig_refuse(request, 429, "TooManyRequests", request->number == 0 ? "Retry-After: 1\r\n" : "");
	else
		rig_answer(request, 201, "", request->body);
}

static void
test_a_throttled_create_is_tried_again_when_the_server_says(void **state)
{
	struct fixture f;
	struct told told;

	(void)state;
	start(&f, handle_throttle, NULL, (struct kube_options){ .retries = 3 });
	f.stage = 2;
	call(&f, KUBE_POST, "/x", KUBE_RETRY_NEVER, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_NONE);
	assert_int_equal(f.rig.requests, 3);
	assert_true(f.rig.log[1].at_ms - f.rig.log[0].at_ms >= 1000);
	f.stage = UINT32_MAX;
	call(&f, KUBE_POST, "/x", KUBE_RETRY_NEVER, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_BUSY);
	assert_false(told.maybe_done);
	assert_int_equal(f.rig.requests, 3 + 4);
	stop(&f);
}

static void
handle_trouble(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (request->number < f->stage)
		rig_refuse(request, 500, "InternalError", "");
	else
		rig_refuse(request, 404, "NotFound", "");
}

static void
test_trouble_is_tried_again_as_the_request_allows(void **state)
{
	struct fixture f;
	struct told told;

	(void)state;
	start(&f, handle_trouble, NULL, (struct kube_options){ .retries = 3 });
	f.stage = UINT32_MAX;
	call(&f, KUBE_POST, "/x", KUBE_RETRY_NEVER, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_UNAVAILABLE);
	assert_true(told.maybe_done);
	assert_int_equal(f.rig.requests, 1);
	call(&f, KUBE_GET, "/x", KUBE_RETRY_READ, &told);
	rig_until(&f.rig, &told.done);
	assert_non_null(strstr(told.words, "words of InternalError"));
	assert_false(told.maybe_done);
	assert_int_equal(f.rig.requests, 1 + 4);
	f.stage = f.rig.requests + 1;
	call(&f, KUBE_DELETE, "/x", KUBE_RETRY_IDEMPOTENT, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_NOT_FOUND);
	assert_true(told.maybe_done);
	stop(&f);
}

static void
handle_cut(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (request->number == 0)
		rig_answer(request, 200, "", "{}");
	else if (f->stage == 0)
		rig_close(request->bev);
	else if (f->stage == 1)
		rig_reset(request->bev);
	else if (f->stage == 2 && request->number == 1) {
		rig_send(request->bev, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half\":");
		rig_close(request->bev);
	} else {
		rig_answer(request, 200, "", "{\"whole\":1}");
	}
}

/* libcurl would send it again by itself: the connection had been used before, and not one byte of an answer came. */
static void
test_a_create_whose_answer_is_lost_goes_out_once(void **state)
{
	(void)state;
	for (uint32_t stage = 0; stage < 2; stage++) {
		for (int with_body = 0; with_body < 2; with_body++) {
			struct fixture f;
			struct told told;

			start(&f, handle_cut, NULL, (struct kube_options){ .retries = 3 });
			f.stage = stage;
			call(&f, KUBE_GET, "/warm", KUBE_RETRY_READ, &told);
			rig_until(&f.rig, &told.done);
			call(&f, with_body ? KUBE_POST : KUBE_GET, "/x", KUBE_RETRY_NEVER, &told);
			rig_until(&f.rig, &told.done);
			assert_int_not_equal(told.code, ERR_NONE);
			assert_int_equal(told.status, 0);
			assert_true(told.maybe_done);
			assert_int_equal(f.rig.requests, 2);
			stop(&f);
		}
	}
}

static void
test_half_an_answer_is_none(void **state)
{
	struct fixture f;
	struct told told;

	(void)state;
	start(&f, handle_cut, NULL, (struct kube_options){ .retries = 3 });
	f.stage = 2;
	call(&f, KUBE_GET, "/warm", KUBE_RETRY_READ, &told);
	rig_until(&f.rig, &told.done);
	call(&f, KUBE_GET, "/x", KUBE_RETRY_READ, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_NONE);
	assert_string_equal(told.body, "{\"whole\":1}");
	stop(&f);
}

static void
test_nobody_there_is_told_in_words_and_surely_not_done(void **state)
{
	struct fixture f;
	struct told told;
	struct kube_stats stats;

	(void)state;
	start(&f, handle_plain, NULL, (struct kube_options){ .retries = 2 });
	rig_deafen(&f.rig);
	call(&f, KUBE_POST, "/x", KUBE_RETRY_NEVER, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(told.words, "http://127.0.0.1:"));
	assert_false(told.maybe_done);
	kube_client_stats(f.client, &stats);
	assert_int_equal(stats.attempts, 3);
	assert_int_equal(stats.retries, 2);
	assert_int_equal(stats.busy, 0);
	stop(&f);
}

static void
handle_large(const struct rig_request *request, void *arg)
{
	AUTO_FREE char *body = alloc_zero(1, 20000);

	(void)arg;
	memset(body, ' ', 19999);
	body[0] = '{';
	body[19998] = '}';
	rig_answer(request, 200, "", body);
}

static void
test_an_answer_that_is_too_large_is_refused_at_once(void **state)
{
	struct fixture f;
	struct told told;

	(void)state;
	start(&f, handle_large, NULL, (struct kube_options){ .retries = 3, .max_bytes = 10000 });
	call(&f, KUBE_GET, "/x", KUBE_RETRY_READ, &told);
	rig_until(&f.rig, &told.done);
	assert_int_equal(told.code, ERR_TOO_LARGE);
	assert_int_equal(f.rig.requests, 1);
	stop(&f);
}

static void
test_a_callback_may_free_the_client_and_others_are_not_called(void **state)
{
	struct fixture f;
	struct told first, second, third;

	(void)state;
	start(&f, handle_plain, NULL, (struct kube_options){ .retries = 1 });
	call(&f, KUBE_GET, "/empty", KUBE_RETRY_READ, &first);
	first.free_this = f.client;
	rig_until(&f.rig, &first.done);
	f.client = NULL;
	stop(&f);
	start(&f, handle_plain, NULL, (struct kube_options){ .concurrency = 1 });
	call(&f, KUBE_GET, "/empty", KUBE_RETRY_READ, &first);
	call(&f, KUBE_GET, "/empty", KUBE_RETRY_READ, &second);
	kube_call_cancel(call(&f, KUBE_GET, "/empty", KUBE_RETRY_READ, &third));
	rig_until(&f.rig, &first.done);
	kube_client_free(f.client);
	f.client = NULL;
	rig_turn(&f.rig, 20);
	assert_false(second.done || third.done);
	stop(&f);
}

static void
test_paths_that_are_none_are_refused(void **state)
{
	static const char *const paths[] = { "", "x", "http://x/", "/a b", "/a#b", "/a\r\nX: y" };
	struct fixture f;
	struct err err;

	(void)state;
	start(&f, handle_plain, NULL, (struct kube_options){ 0 });
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		struct kube_request request = { .path = paths[i] };

		assert_int_equal(kube_call_start(f.client, &request, on_done, NULL, NULL, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	stop(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers_come_as_they_are),
		cmocka_unit_test(test_refusals_come_in_words),
		cmocka_unit_test(test_a_throttled_create_is_tried_again_when_the_server_says),
		cmocka_unit_test(test_trouble_is_tried_again_as_the_request_allows),
		cmocka_unit_test(test_a_create_whose_answer_is_lost_goes_out_once),
		cmocka_unit_test(test_half_an_answer_is_none),
		cmocka_unit_test(test_nobody_there_is_told_in_words_and_surely_not_done),
		cmocka_unit_test(test_an_answer_that_is_too_large_is_refused_at_once),
		cmocka_unit_test(test_a_callback_may_free_the_client_and_others_are_not_called),
		cmocka_unit_test(test_paths_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
