/* test_streams.c - a job is followed, read and fed from any process, whatever happens to agent and owner. */
/* SPDX-License-Identifier: MIT */
#include "fixture.h"
#include "base/err.h"
#include "domain/job/job_feed.h"
#include "domain/job/job_output.h"
#include "domain/job/job_stdin.h"
#include "ipc/job_table.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FED "{\"command\":\"x\",\"stdin_open\":true}"

/* What a feed, an output or a write brought. */
struct heard {
	struct job_feed *feed;
	struct job_output *output;
	char statuses[128];
	char text[256];
	int64_t next, length, bytes;
	bool hold; /* takes its time */
	bool paused;
	bool done;
	int code;
	char verdict[32];
};

static void
on_status(const char *status, uint32_t queue_position, void *arg)
{
	struct heard *heard = arg;
	size_t len = strlen(heard->statuses);

	(void)queue_position;
	snprintf(heard->statuses + len, sizeof heard->statuses - len, "%s;", status);
}

static void
on_feed_piece(const struct job_feed_piece *piece, void *arg)
{
	struct heard *heard = arg;

	assert_int_equal(piece->stream, JOB_STDOUT);
	assert_int_equal(piece->offset, heard->next);
	strncat(heard->text, piece->data, piece->len);
	heard->next = piece->next[JOB_STDOUT];
}

static void
on_pause(void *arg)
{
	struct heard *heard = arg;

	heard->paused = heard->hold;
	if (!heard->hold)
		job_feed_more(heard->feed);
}

static void
on_quiet(void *arg)
{
	(void)arg;
}

static void
on_feed_end(struct json_object *job, const struct err *why, void *arg)
{
	struct heard *heard = arg;
	const char *verdict = json_object_get_string(json_object_object_get(job, "verdict"));

	assert_false(heard->done);
	assert_true((job == NULL) == (why != NULL));
	assert_null(json_object_object_get(job, "stdout"));
	assert_null(json_object_object_get(job, "_stdout_base64"));
	heard->done = true;
	heard->code = why != NULL ? (int)why->code : ERR_NONE;
	snprintf(heard->verdict, sizeof heard->verdict, "%s", verdict != NULL ? verdict : "");
}

static const struct job_feed_ops feed_ops = {
	.status = on_status, .piece = on_feed_piece, .pause = on_pause, .quiet = on_quiet, .end = on_feed_end
};

static void
follow(struct fixture *f, int service, const char *tenant, const char *job_id, struct heard *heard)
{
	static const int64_t from_the_start[JOB_STREAMS] = { 0, 0 };
	struct err err;

	*heard = (struct heard){ .hold = heard->hold };
	if (job_feed_start(f->services[service], tenant, job_id, from_the_start, &feed_ops, heard, &heard->feed,
		    &err) != 0)
		fail_msg("%s", err.msg);
}

static bool
on_open(const struct job_output_info *info, void *arg)
{
	struct heard *heard = arg;

	heard->length = info->length;
	heard->bytes = info->bytes;
	snprintf(heard->statuses, sizeof heard->statuses, "%s", info->status);
	return true;
}

static void
on_output_piece(const void *data, size_t len, void *arg)
{
	struct heard *heard = arg;

	strncat(heard->text, data, len);
	job_output_more(heard->output);
}

static void
on_output_end(const struct err *why, void *arg)
{
	struct heard *heard = arg;

	heard->done = true;
	heard->code = why != NULL ? (int)why->code : ERR_NONE;
}

static const struct job_output_ops output_ops = { .open = on_open, .piece = on_output_piece, .end = on_output_end };

static struct heard
read_output(struct fixture *f, int service, const char *tenant, const char *job_id, int64_t offset)
{
	struct job_output_ask ask = { .stream = JOB_STDOUT, .offset = offset, .limit = INT64_MAX };
	struct heard heard = { 0 };
	struct err err;

	heard.output = job_output_start(f->services[service], tenant, job_id, &ask, &output_ops, &heard, &err);
	assert_non_null(heard.output);
	run_until(f, &heard.done);
	return heard;
}

static void
on_written(const struct job_stdin_result *result, const struct err *why, void *arg)
{
	struct heard *heard = arg;

	assert_false(heard->done);
	heard->done = true;
	heard->code = why != NULL ? (int)why->code : ERR_NONE;
	if (result != NULL) {
		heard->length = result->accepted;
		heard->bytes = result->bytes;
	}
}

static struct job_stdin *
feed_job(struct fixture *f, int service, const char *tenant, const char *job_id, const char *text,
	struct heard *heard)
{
	struct job_stdin_ask ask = { .job_id = job_id, .data = text, .len = strlen(text) };
	struct job_stdin *write;
	struct err err;

	*heard = (struct heard){ 0 };
	if (job_stdin_start(f->services[service], tenant, &ask, on_written, heard, &write, &err) != 0)
		fail_msg("%s", err.msg);
	return write;
}

static bool
somebody_polls(struct fixture *f)
{
	return f->polls[0] != NULL;
}

/* --- following --- */

static void
test_a_feed_of_another_process_goes_from_the_queue_to_the_end(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome first, second;
	struct heard heard = { 0 };

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	f->next = FAKE_HOLD;
	submit(f, 0, "a", COMMAND, &second, NULL);
	follow(f, 1, "t", second.job_id, &heard);
	while (strcmp(heard.statuses, "queued;") != 0)
		event_base_loop(f->base, EVLOOP_ONCE);
	fake_end(f, first.job_id, 0);
	run_until_call(f, somebody_polls);
	assert_string_equal(heard.statuses, "queued;running;");
	fake_write(f, "hi");
	run_until_call(f, somebody_polls);
	assert_string_equal(heard.text, "hi");
	fake_write(f, "\xff\n");
	fake_end(f, second.job_id, 3);
	run_until(f, &heard.done);
	assert_int_equal(heard.code, ERR_NONE);
	assert_string_equal(heard.verdict, "exited");
	assert_string_equal(heard.text, "hi\xff\n");
}

static void
test_a_lost_connection_costs_a_feed_nothing(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard = { 0 };

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	fake_write(f, "hi");
	f->output_cuts = 3;
	follow(f, 1, "t", job.job_id, &heard);
	run_until_call(f, somebody_polls);
	assert_int_equal(f->output_cuts, 0);
	assert_string_equal(heard.text, "hi");
	fake_write(f, "\xff\n");
	fake_end(f, job.job_id, 0);
	run_until(f, &heard.done);
	assert_string_equal(heard.text, "hi\xff\n");
}

static void
test_a_feed_that_is_not_taken_asks_for_nothing(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard = { .hold = true };
	int reads;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	fake_write(f, "hi");
	follow(f, 1, "t", job.job_id, &heard);
	run_until(f, &heard.paused);
	reads = f->reads;
	fake_write(f, "\xff\n");
	fake_end(f, job.job_id, 0);
	wait_job(f, 0, job.job_id, &job);
	run_due(f);
	assert_int_equal(f->reads, reads);
	assert_string_equal(heard.text, "hi");
	heard.hold = false;
	job_feed_more(heard.feed);
	run_until(f, &heard.done);
	assert_string_equal(heard.text, "hi\xff\n");
}

static void
test_nonsense_of_an_agent_ends_the_feed(void **state)
{
	static const char *const nonsense[] = {
		"{}",
		"{\"state\":\"running\"}",
		"{\"state\":\"running\",\"stdout\":{\"offset\":0,\"bytes\":4,\"base64\":\"aGn\"},"
		"\"stderr\":{\"offset\":0,\"bytes\":0,\"base64\":\"\"}}",
		"{\"state\":\"running\",\"stdout\":{\"offset\":0,\"bytes\":1,\"base64\":\"aGk=\"},"
		"\"stderr\":{\"offset\":0,\"bytes\":0,\"base64\":\"\"}}",
		"{\"state\":\"running\",\"stdout\":{\"offset\":9,\"bytes\":4,\"base64\":\"\"},"
		"\"stderr\":{\"offset\":0,\"bytes\":0,\"base64\":\"\"}}",
		"{\"state\":\"running\",\"stdout\":{\"offset\":-1,\"bytes\":4,\"base64\":\"\"},"
		"\"stderr\":{\"offset\":0,\"bytes\":0,\"base64\":\"\"}}",
		"{\"state\":\"running\",\"stdout\":{\"offset\":0,\"bytes\":0,\"base64\":\"\"}}",
	};
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard = { 0 };

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
		f->output_answer = nonsense[i];
		follow(f, 1, "t", job.job_id, &heard);
		run_until(f, &heard.done);
		assert_int_equal(heard.code, ERR_UNAVAILABLE);
		assert_string_equal(heard.text, "");
	}
}

static void
test_a_dead_owner_does_not_end_the_feed(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct job_record live;
	struct outcome job;
	struct heard heard = { 0 };
	uint32_t slot;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	follow(f, 1, "t", job.job_id, &heard);
	run_until_call(f, somebody_polls);
	fixture_kill(f, 0);
	fake_write(f, "hi\xff\n");
	fake_end(f, job.job_id, 0);
	run_due(f);
	assert_string_equal(heard.text, "hi\xff\n");
	assert_false(heard.done);
	assert_true(job_table_find(shm_jobs(f->shm), job.job_id, &live, &slot));
	exec_resume(f->services[1], slot);
	run_until(f, &heard.done);
	assert_string_equal(heard.verdict, "exited");
}

static void
test_a_deleted_sandbox_ends_the_feed_with_the_job(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard = { 0 }, after;
	struct err err;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	fake_write(f, "hi");
	follow(f, 1, "t", job.job_id, &heard);
	run_until_call(f, somebody_polls);
	assert_int_equal(delete_sandbox(f, 0, "t", "a", &err), 0);
	run_until(f, &heard.done);
	assert_string_equal(heard.verdict, "sandbox_deleted");
	assert_string_equal(heard.text, "hi");
	after = read_output(f, 1, "t", job.job_id, 0);
	assert_int_equal(after.code, ERR_GONE);
}

static void
test_a_stopping_process_ends_its_feeds(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard = { 0 };

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	follow(f, 1, "t", job.job_id, &heard);
	run_until_call(f, somebody_polls);
	fixture_kill(f, 1);
	assert_true(heard.done);
	assert_int_equal(heard.code, ERR_UNAVAILABLE);
}

static void
test_jobs_of_others_are_not_there(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard = { 0 };

	make_sandbox(f, "a", &record);
	hold_command(f, 0, FED, &job);
	for (int round = 0; round < 2; round++) {
		follow(f, 0, "other", job.job_id, &heard);
		run_until(f, &heard.done);
		assert_int_equal(heard.code, ERR_NOT_FOUND);
		assert_int_equal(read_output(f, 0, "other", job.job_id, 0).code, ERR_NOT_FOUND);
		feed_job(f, 0, "other", job.job_id, "x", &heard);
		run_until(f, &heard.done);
		assert_int_equal(heard.code, ERR_NOT_FOUND);
		if (round == 0) {
			fake_end(f, job.job_id, 0);
			wait_job(f, 0, job.job_id, &job);
		}
	}
	assert_string_equal(f->input, "");
}

/* --- by offset --- */

static void
test_output_is_raw_while_it_runs_and_after(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &job);
	fake_write(f, "hi\xff");
	heard = read_output(f, 1, "t", job.job_id, 1);
	assert_string_equal(heard.text, "i\xff");
	assert_int_equal(heard.length, 2);
	assert_int_equal(heard.bytes, 3);
	assert_string_equal(heard.statuses, "running");
	assert_int_equal(read_output(f, 1, "t", job.job_id, 4).code, ERR_RANGE);
	fake_write(f, "\n");
	fake_end(f, job.job_id, 0);
	wait_job(f, 0, job.job_id, &job);
	assert_string_equal(job.output, "hi\xef\xbf\xbd\n");
	fake_agent_stop(f); /* it is not asked any more */
	heard = read_output(f, 1, "t", job.job_id, 1);
	assert_string_equal(heard.text, "i\xff\n");
	assert_int_equal(heard.length, 3);
	assert_string_equal(heard.statuses, "succeeded");
	assert_int_equal(read_output(f, 1, "t", job.job_id, 5).code, ERR_RANGE);
}

static void
test_what_was_cut_is_asked_for_at_the_agent(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard;

	make_sandbox(f, "a", &record);
	f->truncated = true;
	run_command(f, 0, "a", COMMAND, &job);
	strcpy(f->output, "all of it");
	f->output_cuts = 1;
	heard = read_output(f, 1, "t", job.job_id, 4);
	assert_int_equal(heard.code, ERR_NONE);
	assert_string_equal(heard.text, "of it");
	f->output_answer = "{\"state\":\"ended\",\"stdout\":{\"offset\":6,\"bytes\":9,\"base64\":\"IGl0\"}}";
	assert_int_equal(read_output(f, 1, "t", job.job_id, 2).code, ERR_GONE);
	f->job_count = 0; /* the agent has forgotten it */
	assert_int_equal(read_output(f, 1, "t", job.job_id, 0).code, ERR_GONE);
	follow(f, 1, "t", job.job_id, &heard);
	run_until(f, &heard.done);
	assert_int_equal(heard.code, ERR_NONE);
	assert_string_equal(heard.text, "");
}

/* --- stdin --- */

static void
test_a_write_waits_for_its_job(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome first, second;
	struct heard heard;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	f->next = FAKE_HOLD;
	submit(f, 0, "a", FED, &second, NULL);
	feed_job(f, 1, "t", second.job_id, "early", &heard);
	run_due(f);
	assert_false(heard.done);
	fake_end(f, first.job_id, 0);
	run_until(f, &heard.done);
	assert_int_equal(heard.code, ERR_NONE);
	assert_int_equal(heard.length, 5);
	assert_string_equal(f->input, "early");
	fake_end(f, second.job_id, 0);
}

static void
test_a_write_whose_answer_is_lost_is_written_once(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome job;
	struct heard heard;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, FED, &job);
	f->write_cuts = 2;
	feed_job(f, 1, "t", job.job_id, "once", &heard);
	run_until(f, &heard.done);
	assert_int_equal(heard.code, ERR_NONE);
	assert_int_equal(f->writes, 3);
	assert_string_equal(f->input, "once");
	assert_int_equal(heard.bytes, 4);
}

static void
test_closed_stdin_is_told(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome open, plain;
	struct heard heard;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, FED, &open);
	submit(f, 0, "a", COMMAND, &plain, NULL);
	feed_job(f, 1, "t", plain.job_id, "x", &heard);
	run_until(f, &heard.done);
	assert_int_equal(heard.code, ERR_CLOSED);
	f->stdin_closed = true;
	feed_job(f, 1, "t", open.job_id, "x", &heard);
	run_until(f, &heard.done);
	assert_int_equal(heard.code, ERR_CLOSED);
	fake_end(f, open.job_id, 0);
	wait_job(f, 0, open.job_id, &open);
	feed_job(f, 1, "t", open.job_id, "x", &heard);
	run_until(f, &heard.done);
	assert_int_equal(heard.code, ERR_CLOSED);
}

static void
test_what_waits_to_be_written_is_bounded(void **state)
{
	struct fixture *f = *state;
	struct sandbox_record record;
	struct outcome first, second;
	struct heard heard[70] = { 0 };
	struct job_stdin *writes[70];
	char *data = calloc(1, JOB_STDIN_MAX + 1);
	struct job_stdin_ask ask = { .data = data, .len = JOB_STDIN_MAX + 1 };
	struct err err;
	int n = 0;

	make_sandbox(f, "a", &record);
	hold_command(f, 0, COMMAND, &first);
	submit(f, 0, "a", FED, &second, NULL);
	ask.job_id = second.job_id;
	assert_int_equal(job_stdin_start(f->services[0], "t", &ask, on_written, heard, &writes[0], &err), -1);
	assert_int_equal(err.code, ERR_TOO_LARGE);
	ask.len = JOB_STDIN_MAX;
	while (n < 70 && job_stdin_start(f->services[0], "t", &ask, on_written, &heard[n], &writes[n], &err) == 0)
		n++;
	assert_in_range(n, 1, 69);
	assert_int_equal(err.code, ERR_BUSY);
	for (int i = 0; i < n; i++)
		job_stdin_cancel(writes[i]);
	free(data);
	feed_job(f, 0, "t", second.job_id, "x", &heard[0]);
	fixture_kill(f, 0);
	assert_int_equal(heard[0].code, ERR_UNAVAILABLE);
}

#define STREAM_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		STREAM_TEST(test_a_feed_of_another_process_goes_from_the_queue_to_the_end),
		STREAM_TEST(test_a_lost_connection_costs_a_feed_nothing),
		STREAM_TEST(test_a_feed_that_is_not_taken_asks_for_nothing),
		STREAM_TEST(test_nonsense_of_an_agent_ends_the_feed),
		STREAM_TEST(test_a_dead_owner_does_not_end_the_feed),
		STREAM_TEST(test_a_deleted_sandbox_ends_the_feed_with_the_job),
		STREAM_TEST(test_a_stopping_process_ends_its_feeds),
		STREAM_TEST(test_jobs_of_others_are_not_there),
		STREAM_TEST(test_output_is_raw_while_it_runs_and_after),
		STREAM_TEST(test_what_was_cut_is_asked_for_at_the_agent),
		STREAM_TEST(test_a_write_waits_for_its_job),
		STREAM_TEST(test_a_write_whose_answer_is_lost_is_written_once),
		STREAM_TEST(test_closed_stdin_is_told),
		STREAM_TEST(test_what_waits_to_be_written_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
