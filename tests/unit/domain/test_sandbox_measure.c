/* test_sandbox_measure.c - what a sandbox takes, and looking at one where nobody says that. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "backend/driver.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct looked {
	bool done;
	int times;
	struct json_object *json;
};

static void
on_measured(struct json_object *json, void *arg)
{
	struct looked *looked = arg;

	json_object_put(looked->json);
	looked->json = json;
	looked->times++;
	looked->done = true;
}

static struct json_object *
usage_of(const struct looked *looked)
{
	struct json_object *usage;

	assert_true(json_object_object_get_ex(looked->json, "usage", &usage));
	return usage;
}

static void
test_usage_is_told_and_the_unknown_is_null(void **state)
{
	struct fixture *f = *state;
	struct driver_usage usage = { 1250000, 1234, 2345, 3, -1 };
	struct sandbox_record record;
	struct looked looked = { 0 };

	f->usage = &usage;
	make_sandbox(f, "a", &record);
	sandbox_measure(f->services[0], &record, on_measured, &looked);
	run_until(f, &looked.done);
	assert_string_equal(json_object_to_json_string_ext(usage_of(&looked), JSON_C_TO_STRING_PLAIN),
		"{\"cpu_s\":1.25,\"memory_bytes\":1234,\"memory_peak_bytes\":2345,\"pids\":3,\"disk_bytes\":null}");
	assert_string_equal(json_object_get_string(json_object_object_get(looked.json, "sandbox_id")), "a");
	json_object_put(looked.json);
}

static void
test_what_does_not_run_is_not_measured(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct looked looked = { 0 };

	make_sandbox(f, "a", &record);
	sandbox_measure(f->services[0], &record, on_measured, &looked); /* it has gone meanwhile */
	run_until(f, &looked.done);
	assert_null(usage_of(&looked));
	record.status = SANDBOX_FAILED;
	f->hold_stats = true; /* and this one is not even asked for */
	sandbox_measure(f->services[0], &record, on_measured, &looked);
	assert_int_equal(looked.times, 2);
	assert_null(usage_of(&looked));
	json_object_put(looked.json);
}

static void
test_a_driver_that_says_nothing_holds_nobody_up(void **state)
{
	struct fixture *f = *state;
	struct driver_usage usage = { 0 };
	struct sandbox_record record;
	struct looked looked = { 0 };

	f->usage = &usage;
	f->hold_stats = true;
	make_sandbox(f, "a", &record);
	sandbox_measure(f->services[0], &record, on_measured, &looked);
	run_until(f, &looked.done);
	assert_null(usage_of(&looked));
	fixture_release_creates(f); /* too late is not told once more */
	run_due(f);
	assert_int_equal(looked.times, 1);
	json_object_put(looked.json);
}

static void
test_a_process_that_ends_tells_whoever_waits(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct looked looked = { 0 };

	f->hold_stats = true;
	make_sandbox(f, "a", &record);
	sandbox_measure(f->services[0], &record, on_measured, &looked);
	fixture_kill(f, 0);
	assert_int_equal(looked.times, 1);
	assert_null(usage_of(&looked));
	json_object_put(looked.json);
}

/* Of the first service: its driver cannot tell, as that of pods. */
static int
agents_setup(void **state)
{
	struct fixture *f;

	if (fixture_setup(state) != 0)
		return -1;
	f = *state;
	fixture_kill(f, 0);
	f->agents_tell = true;
	fixture_revive(f, 0);
	return 0;
}

static void
look(struct fixture *f, struct sandbox_record *record, struct looked *looked)
{
	looked->done = false;
	sandbox_measure(f->services[0], record, on_measured, looked);
	run_until(f, &looked->done);
}

static void
test_an_agent_is_asked_where_the_driver_cannot_tell(void **state)
{
	static const struct {
		const char *answer; /* NULL: an agent of an older version */
		const char *usage;
	} cases[] = {
		{ "{\"cpu_us\":1250000,\"memory_bytes\":1234,\"memory_peak_bytes\":2345,\"pids\":3}",
			"{\"cpu_s\":1.25,\"memory_bytes\":1234,\"memory_peak_bytes\":2345,\"pids\":3,"
			"\"disk_bytes\":null}" },
		{ "{\"pids\":3,\"disk_bytes\":1,\"later\":{}}",
			"{\"cpu_s\":null,\"memory_bytes\":null,\"memory_peak_bytes\":null,\"pids\":3,"
			"\"disk_bytes\":null}" },
		{ "{\"memory_bytes\":0,\"pids\":-1,\"cpu_us\":1.5,\"memory_peak_bytes\":\"7\"}",
			"{\"cpu_s\":null,\"memory_bytes\":0,\"memory_peak_bytes\":null,\"pids\":null,"
			"\"disk_bytes\":null}" },
		{ "{}", NULL },
		{ "[1]", NULL },
		{ "{\"pids\":", NULL },
		{ NULL, NULL },
	};
	struct fixture *f = *state;
	struct sandbox_record record;
	struct looked looked = { 0 };

	make_sandbox(f, "a", &record);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		f->usage_answer = cases[i].answer;
		look(f, &record, &looked);
		assert_int_equal(f->usages, (int)i + 1);
		if (cases[i].usage == NULL)
			assert_null(usage_of(&looked));
		else
			assert_string_equal(
				json_object_to_json_string_ext(usage_of(&looked), JSON_C_TO_STRING_PLAIN),
				cases[i].usage);
	}
	json_object_put(looked.json);
}

static void
test_an_agent_that_says_nothing_holds_nobody_up(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct looked looked = { 0 };

	make_sandbox(f, "a", &record);
	f->usage_held = true;
	look(f, &record, &looked);
	assert_null(usage_of(&looked));
	fake_agent_stop(f); /* nor one that is not there */
	look(f, &record, &looked);
	assert_null(usage_of(&looked));
	assert_int_equal(f->usages, 1);
	assert_int_equal(looked.times, 2);
	json_object_put(looked.json);
}

static void
test_nobody_asks_an_agent_that_is_known_not_to_answer(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct looked looked = { 0 };

	make_sandbox(f, "a", &record);
	f->usage_answer = "{\"pids\":3}";
	record.ready = false;
	sandbox_measure(f->services[0], &record, on_measured, &looked);
	assert_int_equal(looked.times, 1);
	assert_null(usage_of(&looked));
	record.status = SANDBOX_FAILED;
	record.ready = true;
	sandbox_measure(f->services[0], &record, on_measured, &looked);
	assert_int_equal(looked.times, 2);
	run_due(f);
	assert_int_equal(f->usages, 0);
	json_object_put(looked.json);
}

static void
test_a_process_that_ends_leaves_no_question_to_an_agent(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct looked looked = { 0 };

	make_sandbox(f, "a", &record);
	f->usage_held = true;
	sandbox_measure(f->services[0], &record, on_measured, &looked);
	fixture_kill(f, 0);
	assert_int_equal(looked.times, 1);
	assert_null(usage_of(&looked));
	json_object_put(looked.json);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_usage_is_told_and_the_unknown_is_null, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_what_does_not_run_is_not_measured, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_driver_that_says_nothing_holds_nobody_up, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_process_that_ends_tells_whoever_waits, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_an_agent_is_asked_where_the_driver_cannot_tell, agents_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_an_agent_that_says_nothing_holds_nobody_up, agents_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_nobody_asks_an_agent_that_is_known_not_to_answer, agents_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_process_that_ends_leaves_no_question_to_an_agent, agents_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
