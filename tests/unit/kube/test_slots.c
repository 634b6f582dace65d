/* test_slots.c - who may ask at the same time, and connections that go silent. */
/* SPDX-License-Identifier: MIT */
#include "kube_rig.h"

#include "base/clock.h"
#include "base/err.h"
#include "kube/kube_client.h"
#include "kube/kube_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { CALLS = 20 };

struct fixture {
	struct rig rig;
	struct kube_config *config;
	struct kube_client *client;
	struct rig_request held[CALLS];
	uint32_t held_count;
	uint32_t done, failed;
	enum err_code code; /* of the last */
	uint32_t order[CALLS]; /* in which the calls' numbers ended */
	struct ticket {
		struct fixture *f;
		uint32_t number;
	} tickets[CALLS];
};

static void
on_done(const struct kube_answer *answer, void *arg)
{
	struct ticket *ticket = arg;
	struct fixture *f = ticket->f;

	f->order[f->done++] = ticket->number;
	f->failed += answer->why != NULL;
	f->code = answer->why != NULL ? answer->why->code : ERR_NONE;
}

static void
start(struct fixture *f, rig_f *handle, struct kube_options options)
{
	struct err err;

	memset(f, 0, sizeof *f);
	rig_start(&f->rig, handle, f);
	f->config = rig_config(&f->rig, NULL);
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
ask(struct fixture *f, uint32_t number, const char *path)
{
	struct kube_request request = { .path = path, .retry = KUBE_RETRY_READ };
	struct kube_call *call;
	struct err err;

	f->tickets[number] = (struct ticket){ f, number };
	assert_int_equal(kube_call_start(f->client, &request, on_done, &f->tickets[number], &call, &err), 0);
	return call;
}

static void
handle_hold(const struct rig_request *request, void *arg)
{
	struct fixture *f = arg;

	if (strstr(request->line, "/hold") != NULL)
		f->held[f->held_count++] = *request;
	else if (strstr(request->line, "/busy") != NULL)
		rig_refuse(request, 429, "TooManyRequests", "Retry-After: 1\r\n");
	else
		rig_answer(request, 200, "", "{}");
}

static void
test_no_more_than_its_slots_are_under_way_and_none_is_passed_over(void **state)
{
	struct fixture f;
	struct kube_stats stats;

	(void)state;
	start(&f, handle_hold, (struct kube_options){ .concurrency = 3 });
	for (uint32_t i = 0; i < CALLS; i++)
		ask(&f, i, "/hold");
	for (uint32_t i = 0; i < CALLS; i++) {
		rig_until_count(&f.rig, &f.held_count, i + 3 < CALLS ? i + 3 : CALLS);
		kube_client_stats(f.client, &stats);
		assert_int_equal(stats.busy, i + 3 <= CALLS ? 3 : CALLS - i);
		assert_int_equal(f.held_count - i, stats.busy);
		rig_answer(&f.held[i], 200, "", "{}");
		rig_until_count(&f.rig, &f.done, i + 1);
		assert_int_equal(f.order[i], i);
	}
	assert_int_equal(f.failed, 0);
	assert_true(f.rig.connections <= 3);
	stop(&f);
}

static void
test_a_slot_is_free_during_a_pause_and_after_a_cancel(void **state)
{
	struct fixture f;
	struct kube_call *call;

	(void)state;
	start(&f, handle_hold, (struct kube_options){ .concurrency = 1, .retries = 1 });
	ask(&f, 0, "/busy");
	ask(&f, 1, "/plain");
	rig_until_count(&f.rig, &f.done, 1);
	assert_int_equal(f.order[0], 1);
	call = ask(&f, 2, "/hold");
	rig_until_count(&f.rig, &f.held_count, 1);
	ask(&f, 3, "/plain");
	kube_call_cancel(call);
	rig_until_count(&f.rig, &f.done, 3);
	assert_int_equal(f.failed, 1);
	stop(&f);
}

/* The first answer of a new server may be long in coming: others do not wait for it. */
static void
test_one_that_hangs_holds_nobody_up(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle_hold, (struct kube_options){ .concurrency = 2 });
	ask(&f, 0, "/hold");
	rig_until_count(&f.rig, &f.held_count, 1);
	ask(&f, 1, "/plain");
	rig_until_count(&f.rig, &f.done, 1);
	assert_int_equal(f.order[0], 1);
	stop(&f);
}

/* The first connection never says a word again, as one through a host that is gone. */
static void
handle_silent_first(const struct rig_request *request, void *arg)
{
	(void)arg;
	if (request->connection != 0)
		rig_answer(request, 200, "", "{}");
}

static void
test_a_silent_connection_is_given_up_in_time(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, handle_silent_first, (struct kube_options){ .attempt_ms = 200, .retries = 0 });
	ask(&f, 0, "/x");
	rig_until_count(&f.rig, &f.done, 1);
	assert_int_equal(f.code, ERR_TIMEOUT);
	ask(&f, 1, "/x");
	rig_until_count(&f.rig, &f.done, 2);
	assert_int_equal(f.code, ERR_NONE);
	assert_int_equal(f.rig.requests, 2);
	stop(&f);
	start(&f, handle_silent_first, (struct kube_options){ .attempt_ms = 200, .retries = 1 });
	ask(&f, 0, "/x");
	rig_until_count(&f.rig, &f.done, 1);
	assert_int_equal(f.code, ERR_NONE);
	stop(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_more_than_its_slots_are_under_way_and_none_is_passed_over),
		cmocka_unit_test(test_a_slot_is_free_during_a_pause_and_after_a_cancel),
		cmocka_unit_test(test_one_that_hangs_holds_nobody_up),
		cmocka_unit_test(test_a_silent_connection_is_given_up_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
