/* test_http2.c - requests that share a connection, and what becomes of them when the server has had enough of it. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"
#include "tls_rig.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"
#include "kube/kube_status.h"
#include "kube/kube_watch.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
	struct rig rig;
	struct door door;
	struct kube_config *config;
	struct kube_client *client;
	uint32_t done, good;
	bool maybe_done;
	int requests; /* that the server has had, by its last answer */
	uint32_t synced, objects, troubles;
	char names[64]; /* of the objects, in their order */
};

static void
nothing(const struct rig_request *request, void *arg)
{
	(void)arg;
	rig_refuse(request, 404, "NotFound", "");
}

static void
start(struct fixture *f, const char *const *steps)
{
	struct kube_options options = { .pause_ms = 1, .retries = 2, .list_ms = 1 };
	AUTO_FREE char *ca = tls_path("ca.crt");
	AUTO_FREE char *cluster = alloc_format(", certificate-authority: '%s'", ca);
	struct err err;

	memset(f, 0, sizeof *f);
	rig_start(&f->rig, nothing, f);
	door_open(&f->door, "http2_server.py", "address", steps);
	f->config = rig_config_tls(&f->rig, f->door.port, cluster, "");
	assert_int_equal(kube_client_create(f->rig.base, f->config, &options, &f->client, &err), 0);
}

static void
stop(struct fixture *f)
{
	kube_client_free(f->client);
	kube_config_free(f->config);
	door_close(&f->door);
	rig_stop(&f->rig);
}

static void
on_done(const struct kube_answer *answer, void *arg)
{
	struct fixture *f = arg;
	struct json_object *requests;

	f->done++;
	f->good += answer->why == NULL;
	f->maybe_done = answer->maybe_done;
	if (answer->body != NULL && json_object_object_get_ex(answer->body, "requests", &requests))
		f->requests = json_object_get_int(requests);
}

static void
ask(struct fixture *f, enum kube_method method, enum kube_retry retry)
{
	AUTO_JSON struct json_object *body = method == KUBE_POST ? json_object_new_object() : NULL;
	struct kube_request request = { .method = method, .path = "/x", .body = body, .retry = retry };
	struct err err;

	assert_int_equal(kube_call_start(f->client, &request, on_done, f, NULL, &err), 0);
}

static void
test_requests_share_a_connection(void **state)
{
	/* The first is answered when the third has come: none of them waits for another's answer. */
	static const char *const steps[] = { "wait=3;head;={};end", "wait=3;head;={};end", "head;={};end", NULL };
	struct kube_stats stats;
	struct fixture f;

	(void)state;
	start(&f, steps);
	for (int i = 0; i < 3; i++)
		ask(&f, KUBE_GET, KUBE_RETRY_READ);
	rig_until_count(&f.rig, &f.done, 3);
	assert_int_equal(f.good, 3);
	kube_client_stats(f.client, &stats);
	assert_int_equal(stats.http2, 3);
	assert_int_equal(stats.attempts, 3);
	stop(&f);
}

static void
test_a_request_that_goaway_lets_end_has_its_answer(void **state)
{
	static const char *const steps[] = { "head;goaway;={};end;close", "head;count;end", NULL };
	struct fixture f;

	(void)state;
	start(&f, steps);
	ask(&f, KUBE_POST, KUBE_RETRY_NEVER);
	rig_until_count(&f.rig, &f.done, 1);
	assert_int_equal(f.good, 1);
	ask(&f, KUBE_GET, KUBE_RETRY_READ);
	rig_until_count(&f.rig, &f.done, 2);
	assert_int_equal(f.good, 2);
	assert_int_equal(f.requests, 2);
	stop(&f);
}

/* Those that came too late for the connection, and those that it was to answer when it ended. */
static void
test_a_request_that_goaway_leaves_out_is_asked_again(void **state)
{
	static const char *const ends[] = { "goaway-before;close", "goaway;close", "refused" };

	(void)state;
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		const char *const steps[] = { ends[i], "head;count;end", NULL };
		struct fixture f;

		start(&f, steps);
		ask(&f, KUBE_GET, KUBE_RETRY_READ);
		rig_until_count(&f.rig, &f.done, 1);
		assert_int_equal(f.good, 1);
		assert_int_equal(f.requests, 2);
		stop(&f);
	}
}

static void
test_a_create_that_goaway_cuts_off_goes_out_once(void **state)
{
	static const char *const steps[] = { "goaway;close", "head;count;end", NULL };
	struct fixture f;

	(void)state;
	start(&f, steps);
	ask(&f, KUBE_POST, KUBE_RETRY_NEVER);
	rig_until_count(&f.rig, &f.done, 1);
	assert_int_equal(f.good, 0);
	assert_true(f.maybe_done);
	ask(&f, KUBE_GET, KUBE_RETRY_READ);
	rig_until_count(&f.rig, &f.done, 2);
	assert_int_equal(f.requests, 2);
	stop(&f);
}

/* --- a watch --- */

static void
on_reset(void *arg)
{
	(void)arg;
}

static void
on_object(void *arg, enum kube_change change, struct json_object *object)
{
	struct fixture *f = arg;

	(void)change;
	f->objects++;
	strcat(f->names, kube_json_text(kube_json_object(object, "metadata"), "name"));
}

static void
on_synced(void *arg)
{
	struct fixture *f = arg;

	f->synced++;
}

static void
on_trouble(void *arg, const struct err *why)
{
	struct fixture *f = arg;

	(void)why;
	f->troubles++;
}

#define ADDED(name, version)                                                                                       \
	"={\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version      \
	"\"}}}"

static void
test_a_watch_goes_on_behind_goaway(void **state)
{
	/* The fourth request finds the first connection on its way out, and the watch there still alive. */
	static const char *const steps[] = {
		"head;={\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]};end",
		"head;goaway;" ADDED("a", "2") ";wait=3;" ADDED("b", "3") ";end;close",
		"head;={};end",
		"head;" ADDED("c", "4"),
		NULL,
	};
	static const struct kube_watch_ops ops = { on_reset, on_object, on_synced, on_trouble };
	struct kube_watch *watch;
	struct fixture f;

	(void)state;
	start(&f, steps);
	watch = kube_watch_start(f.client, "/api/v1/pods", NULL, &ops, &f);
	rig_until_count(&f.rig, &f.objects, 1);
	ask(&f, KUBE_GET, KUBE_RETRY_READ);
	rig_until_count(&f.rig, &f.done, 1);
	rig_until_count(&f.rig, &f.objects, 3);
	assert_string_equal(f.names, "abc");
	assert_int_equal(f.good, 1);
	assert_int_equal(f.synced, 1);
	assert_int_equal(f.troubles, 0);
	kube_watch_stop(watch);
	stop(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_share_a_connection),
		cmocka_unit_test(test_a_request_that_goaway_lets_end_has_its_answer),
		cmocka_unit_test(test_a_request_that_goaway_leaves_out_is_asked_again),
		cmocka_unit_test(test_a_create_that_goaway_cuts_off_goes_out_once),
		cmocka_unit_test(test_a_watch_goes_on_behind_goaway),
	};

	return cmocka_run_group_tests(tests, tls_make_certificates, tls_remove_certificates);
}
