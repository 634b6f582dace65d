/* test_watch.c - a cache fed by a watch stays true whatever the stream does. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"
#include "kube/kube_status.h"
#include "kube/kube_watch.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/bufferevent.h>

enum { NAMES = 32 };

struct fixture {
	struct rig rig;
	struct kube_config *config;
	struct kube_client *client;
	struct kube_watch *watch;
	/* the cache of a user: names, and whether the list that goes on has had them */
	struct {
		char name[64], value[32];
		bool fresh;
	} cache[NAMES];
	uint32_t count, drops;
	uint32_t resets, synced, objects, troubles;
	enum err_code code; /* of the last trouble */
	char words[512];
	bool stop_at_object;
	/* the server */
	const char *items; /* of its list */
	uint32_t version; /* of its list */
	uint32_t lists, streams;
	int64_t list_ms[64];
	struct rig_request stream; /* the last */
	uint32_t stage;
};

static uint32_t
find(const struct fixture *f, const char *name)
{
	uint32_t i = 0;

	while (i < f->count && strcmp(f->cache[i].name, name) != 0)
		i++;
	return i;
}

static void
drop(struct fixture *f, uint32_t i)
{
	f->cache[i] = f->cache[--f->count];
	f->drops++;
}

static void
on_reset(void *arg)
{
	struct fixture *f = arg;

	f->resets++;
	for (uint32_t i = 0; i < f->count; i++)
		f->cache[i].fresh = false;
}

static void
on_object(void *arg, enum kube_change change, struct json_object *object)
{
	struct fixture *f = arg;
	const char *name = kube_json_text(kube_json_object(object, "metadata"), "name");
	uint32_t i = find(f, name);

	f->objects++;
	if (change == KUBE_DELETED) {
		if (i < f->count)
			drop(f, i);
	} else {
		assert_true(i < NAMES);
		f->count += i == f->count;
		snprintf(f->cache[i].name, sizeof f->cache[i].name, "%s", name);
		snprintf(f->cache[i].value, sizeof f->cache[i].value, "%s", kube_json_text(object, "value"));
		f->cache[i].fresh = true;
	}
	if (f->stop_at_object) {
		kube_watch_stop(f->watch);
		f->watch = NULL;
	}
}

static void
on_synced(void *arg)
{
	struct fixture *f = arg;

	f->synced++;
	for (uint32_t i = 0; i < f->count;) {
		if (f->cache[i].fresh)
			i++;
		else
			drop(f, i);
	}
}

static void
on_trouble(void *arg, const struct err *why)
{
	struct fixture *f = arg;

	f->troubles++;
	f->code = why->code;
	strcpy(f->words, why->msg);
}

static const struct kube_watch_ops ops = { on_reset, on_object, on_synced, on_trouble };

static void
answer_list(const struct rig_request *request, struct fixture *f)
{
	AUTO_FREE char *body = alloc_format(
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"%u\"},\"items\":[%s]}", f->version,
		f->items);

	rig_answer(request, 200, "", body);
}

/* Lists are answered; a stream begins and waits for the test. */
static void
handle(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (strstr(request->line, "watch=true") != NULL) {
		f->stream = *request;
		rig_stream(request);
		f->streams++;
		return;
	}
	f->list_ms[f->lists++ % 64] = request->at_ms;
	answer_list(request, f);
}

static void
start_as(struct fixture *f, rig_f *how, const char *user, struct kube_options options)
{
	struct err err;

	memset(f, 0, sizeof *f);
	f->items = "";
	f->version = 1;
	rig_start(&f->rig, how, f);
	f->config = rig_config(&f->rig, user);
	if (options.pause_ms == 0)
		options.pause_ms = 1;
	if (options.list_ms == 0)
		options.list_ms = 1;
	assert_int_equal(kube_client_create(f->rig.base, f->config, &options, &f->client, &err), 0);
	f->watch = kube_watch_start(f->client, "/api/v1/namespaces/n/pods", "app=sandbox,x", &ops, f);
}

static void
start(struct fixture *f, rig_f *how, struct kube_options options)
{
	start_as(f, how, NULL, options);
}

static void
stop(struct fixture *f)
{
	kube_watch_stop(f->watch);
	kube_client_free(f->client);
	kube_config_free(f->config);
	rig_stop(&f->rig);
}

static void
test_a_list_then_each_change(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle, (struct kube_options){ 0 });
	f.items = "{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}";
	assert_int_equal(f.resets, 0);
	rig_until_count(&f.rig, &f.streams, 1);
	assert_int_equal(f.resets, 1);
	assert_int_equal(f.synced, 1);
	assert_int_equal(f.count, 2);
	assert_string_equal(
		f.rig.log[0].line, "GET /api/v1/namespaces/n/pods?limit=250&labelSelector=app%3Dsandbox%2Cx");
	assert_non_null(strstr(f.rig.log[1].line, "resourceVersion=1&"));
	assert_non_null(strstr(f.rig.log[1].line, "allowWatchBookmarks=true"));
	assert_non_null(strstr(f.rig.log[1].line, "timeoutSeconds=60&labelSelector=app%3Dsandbox%2Cx"));
	rig_send(f.stream.bev,
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"2\"}}}\n"
		"{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"},"
		"\"value\":\"new\"}}\n"
		"{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"4\"}}}\n");
	rig_until_count(&f.rig, &f.objects, 5);
	assert_int_equal(f.count, 2);
	assert_string_equal(f.cache[find(&f, "a")].value, "new");
	rig_close(f.stream.bev);
	rig_until_count(&f.rig, &f.streams, 2);
	assert_non_null(strstr(f.rig.log[f.rig.requests - 1].line, "resourceVersion=4&"));
	assert_int_equal(f.lists, 1);
	assert_int_equal(f.resets, 1);
	assert_int_equal(f.troubles, 0);
	stop(&f);
}

static void
handle_expired(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;
	static const char gone[] =
		"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
		"\"Failure\",\"message\":\"too old resource version\",\"reason\":\"Expired\",\"code\":410}}\n";

	if (strstr(request->line, "watch=true") == NULL || f->streams >= f->stage) {
		handle(request, arg);
		return;
	}
	/* Both ways in which it comes. */
	if (++f->streams % 2 == 1) {
		rig_chunks(request);
		rig_chunk(request->bev, gone);
	} else {
		rig_refuse(request, 410, "Expired", "");
	}
}

static void
test_B121_410_leads_to_a_fresh_list(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle_expired, (struct kube_options){ 0 });
	f.items = "{\"metadata\":{\"name\":\"a\"}}";
	f.stage = 10;
	rig_until_count(&f.rig, &f.streams, 11);
	assert_int_equal(f.lists, 11);
	assert_int_equal(f.resets, 11);
	assert_int_equal(f.troubles, 10);
	assert_int_equal(f.code, ERR_GONE);
	assert_int_equal(f.count, 1);
	rig_send(f.stream.bev, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n");
	rig_until_count(&f.rig, &f.objects, 12);
	assert_int_equal(f.count, 2);
	stop(&f);
}

static void
test_B122_a_fresh_list_replaces_what_was_there(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle_expired, (struct kube_options){ 0 });
	f.items = "{\"metadata\":{\"name\":\"s1\"}},{\"metadata\":{\"name\":\"s0\"}}";
	rig_until_count(&f.rig, &f.streams, 1);
	f.stage = 2;
	f.items = "{\"metadata\":{\"name\":\"s2\"}},{\"metadata\":{\"name\":\"s0\"}}";
	rig_reset(f.stream.bev);
	rig_until_count(&f.rig, &f.synced, 2);
	assert_int_equal(f.count, 2);
	assert_int_equal(find(&f, "s1"), f.count);
	assert_true(find(&f, "s2") < f.count && find(&f, "s0") < f.count);
	stop(&f);
}

/* Streams that end at once, then 429 with a pause, then 500. */
static void
handle_hammer(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (strstr(request->line, "watch=true") != NULL) {
		f->streams++;
		rig_stream(request);
		rig_close(request->bev);
		return;
	}
	f->list_ms[f->lists++ % 64] = request->at_ms;
	if (f->lists == 1)
		rig_refuse(request, 429, "TooManyRequests", "Retry-After: 2\r\n");
	else if (f->lists == 2)
		rig_refuse(request, 500, "InternalError", "");
	else
		answer_list(request, f);
}

static void
test_B125_lists_are_apart_and_retry_after_holds(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle_hammer, (struct kube_options){ .list_ms = 500, .pause_ms = 20 });
	rig_until_count(&f.rig, &f.streams, 1);
	assert_int_equal(f.lists, 3);
	assert_int_equal(f.troubles, 2);
	assert_true(f.list_ms[1] - f.list_ms[0] >= 2000);
	/* Counted from before the second: when that one began is not known to the server. */
	assert_true(f.list_ms[2] - f.list_ms[0] >= 2500);
	/* Pauses double: in the time of the first ten's sum there is no room for a hundred. */
	rig_turn(&f.rig, 300);
	assert_true(f.streams < 16);
	assert_int_equal(f.lists, 3);
	stop(&f);
}

static void
test_B127_bookmarks_move_on_and_unknown_types_are_nothing(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle, (struct kube_options){ 0 });
	rig_until_count(&f.rig, &f.streams, 1);
	rig_send(f.stream.bev,
		"{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"77\"}}}\n"
		"{\"type\":\"FOO\",\"object\":{\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"78\"}}}\n"
		"{\"type\":\"BOOKMARK\",\"object\":null}\n{\"type\":7}\n{}\n"
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n");
	rig_until_count(&f.rig, &f.objects, 1);
	assert_string_equal(f.cache[0].name, "a");
	rig_close(f.stream.bev);
	rig_until_count(&f.rig, &f.streams, 2);
	assert_non_null(strstr(f.rig.log[f.rig.requests - 1].line, "resourceVersion=77&"));
	assert_int_equal(f.troubles, 0);
	stop(&f);
}

static void
handle_bad_lists(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (strstr(request->line, "watch=true") != NULL || f->stage == 0) {
		handle(request, arg);
		return;
	}
	f->list_ms[f->lists++ % 64] = request->at_ms;
	switch (f->stage++) {
	case 1:
		rig_refuse(request, 500, "InternalError", "");
		break;
	case 2:
		rig_reset(request->bev);
		break;
	case 3:
		rig_answer(request, 200, "", "{}");
		break;
	case 4:
		rig_send(request->bev, "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{\"items\":[]");
		rig_close(request->bev);
		break;
	case 5:
		rig_answer(request, 200, "",
			"{\"metadata\":{\"continue\":\"more\"},\"items\":[{\"metadata\":{\"name\":\"a\"}}]}");
		break;
	case 6:
		rig_refuse(request, 403, "Forbidden", "");
		break;
	default:
		f->stage = 0;
		answer_list(request, f);
	}
}

/* The client's side of it: a list that failed, or is none, never says that it was whole. */
static void
test_B117_only_a_whole_list_proves_that_something_is_gone(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle_bad_lists, (struct kube_options){ 0 });
	f.items = "{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}";
	rig_until_count(&f.rig, &f.streams, 1);
	f.stage = 1;
	rig_send(f.stream.bev, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410}}\n");
	rig_until_count(&f.rig, &f.synced, 2);
	assert_int_equal(f.stage, 0);
	assert_true(f.troubles >= 5);
	assert_int_equal(f.code, ERR_DENIED);
	assert_non_null(strstr(f.words, "words of Forbidden"));
	assert_int_equal(f.count, 2);
	assert_int_equal(f.drops, 0);
	stop(&f);
}

static void
test_a_stream_that_goes_silent_is_taken_up_again(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle, (struct kube_options){ .silence_ms = 150 });
	rig_until_count(&f.rig, &f.streams, 2);
	assert_int_equal(f.lists, 1);
	assert_int_equal(f.code, ERR_TIMEOUT);
	assert_non_null(strstr(f.words, "said nothing"));
	/* A line that ends in silence is not told, and not taken for the beginning of the next stream's. */
	rig_send(f.stream.bev, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"half");
	rig_until_count(&f.rig, &f.streams, 3);
	rig_send(f.stream.bev, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n");
	rig_until_count(&f.rig, &f.objects, 1);
	assert_string_equal(f.cache[0].name, "a");
	stop(&f);
}

static void
test_lines_that_are_none_break_the_stream_and_nothing_else(void **state)
{
	AUTO_FREE char *text = alloc_zero(1, 30001);
	struct fixture f;

	(void)state;
	start(&f, handle, (struct kube_options){ .max_bytes = 40000 });
	rig_until_count(&f.rig, &f.streams, 1);
	memset(text, 'x', 30000);
	rig_send(f.stream.bev, text);
	rig_send(f.stream.bev, text);
	rig_until_count(&f.rig, &f.streams, 2);
	assert_int_equal(f.code, ERR_TOO_LARGE);
	rig_send(f.stream.bev, "{\"type\":\"ADDED\",\"object\":{\"metad\n");
	rig_until_count(&f.rig, &f.streams, 3);
	assert_non_null(strstr(f.words, "no JSON"));
	assert_int_equal(f.lists, 1);
	/* It goes with its client. */
	f.watch = NULL;
	stop(&f);
}

static void
test_a_version_that_never_works_is_given_up(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle, (struct kube_options){ 0 });
	for (uint32_t i = 1; f.lists < 2; i++) {
		rig_until_count(&f.rig, &f.streams, i);
		rig_send(f.stream.bev,
			"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"message\":\"Too large resource "
			"version\",\"code\":504}}\n");
		assert_true(i < 20);
	}
	rig_until_count(&f.rig, &f.synced, 2);
	assert_non_null(strstr(f.words, "Too large resource version"));
	stop(&f);
}

static void
handle_with_new_token(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (strstr(request->line, "watch=true") == NULL || strcmp(request->token, "new") == 0) {
		handle(request, arg);
		return;
	}
	rig_file(&f->rig, "token", "new");
	rig_refuse(request, 401, "Unauthorized", "");
}

static void
test_a_stream_that_is_refused_goes_on_with_the_new_token(void **state)
{
	struct fixture f;

	(void)state;
	start_as(&f, handle_with_new_token, "tokenFile: token", (struct kube_options){ .pause_ms = 1 });
	rig_file(&f.rig, "token", "old");
	rig_until_count(&f.rig, &f.streams, 1);
	assert_int_equal(f.rig.requests, 3);
	assert_string_equal(f.rig.log[1].token, "old");
	assert_string_equal(f.rig.log[2].token, "new");
	assert_string_equal(f.rig.log[1].line, f.rig.log[2].line);
	assert_int_equal(f.lists, 1);
	stop(&f);
}

static void
test_it_may_be_stopped_from_inside(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle, (struct kube_options){ 0 });
	f.items = "{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}";
	f.stop_at_object = true;
	rig_until_count(&f.rig, &f.objects, 1);
	rig_turn(&f.rig, 10);
	assert_int_equal(f.objects + f.synced, 1);
	stop(&f);
	start(&f, handle, (struct kube_options){ 0 });
	rig_until_count(&f.rig, &f.streams, 1);
	f.stop_at_object = true;
	rig_send(f.stream.bev,
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n"
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n");
	rig_until_count(&f.rig, &f.objects, 1);
	rig_turn(&f.rig, 10);
	assert_int_equal(f.objects, 1);
	stop(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_list_then_each_change),
		cmocka_unit_test(test_B121_410_leads_to_a_fresh_list),
		cmocka_unit_test(test_B122_a_fresh_list_replaces_what_was_there),
		cmocka_unit_test(test_B125_lists_are_apart_and_retry_after_holds),
		cmocka_unit_test(test_B127_bookmarks_move_on_and_unknown_types_are_nothing),
		cmocka_unit_test(test_B117_only_a_whole_list_proves_that_something_is_gone),
		cmocka_unit_test(test_a_stream_that_goes_silent_is_taken_up_again),
		cmocka_unit_test(test_lines_that_are_none_break_the_stream_and_nothing_else),
		cmocka_unit_test(test_a_version_that_never_works_is_given_up),
		cmocka_unit_test(test_a_stream_that_is_refused_goes_on_with_the_new_token),
		cmocka_unit_test(test_it_may_be_stopped_from_inside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
