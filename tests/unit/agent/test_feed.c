/* test_feed.c - a stdin that stays open: order, bounds, repeated writes, ends. */
/* SPDX-License-Identifier: MIT */
#include "agent/feed.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct event_base *base;
static struct feed *feed;
static int reader;

/* One writer, and what it was told. */
struct writer {
	struct feed_turn turn;
	int open, closed;
};

static void
writer_on_turn(bool open, void *arg)
{
	struct writer *writer = arg;

	if (open)
		writer->open++;
	else
		writer->closed++;
}

static void
writer_wait(struct writer *writer, size_t len)
{
	*writer = (struct writer){ .turn = { .len = len, .on_turn = writer_on_turn, .arg = writer } };
	assert_true(feed_wait(feed, &writer->turn));
}

static bool
writer_write(struct writer *writer, uint8_t id, char fill, bool eof, struct feed_result *ret_result)
{
	struct evbuffer *body = evbuffer_new();
	const uint8_t full_id[16] = { id };
	bool taken;

	for (size_t i = 0; i < writer->turn.len; i++)
		evbuffer_add(body, &fill, 1);
	taken = feed_write(feed, &writer->turn, full_id, body, eof, ret_result);
	evbuffer_free(body);
	return taken;
}

static struct feed_result
write_now(uint8_t id, size_t len, char fill, bool eof)
{
	struct feed_result result = { 0 };
	struct writer writer;

	writer_wait(&writer, len);
	assert_int_equal(writer.open, 1);
	assert_true(writer_write(&writer, id, fill, eof, &result));
	return result;
}

static void
turn_loop(void)
{
	event_base_loop(base, EVLOOP_NONBLOCK);
}

/* Reads len bytes, all alike; the feed goes on meanwhile. */
static void
read_fill(size_t len, char fill)
{
	char piece[4096];

	while (len > 0) {
		ssize_t got = read(reader, piece, len < sizeof piece ? len : sizeof piece);

		if (got < 0) {
			turn_loop();
			continue;
		}
		assert_true(got > 0);
		for (ssize_t i = 0; i < got; i++)
			assert_int_equal(piece[i], fill);
		len -= (size_t)got;
	}
}

static void
expect_end(void)
{
	char byte;

	turn_loop();
	assert_int_equal(read(reader, &byte, 1), 0);
}

static int
open_feed(void **state)
{
	int ends[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	base = event_base_new();
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	reader = ends[0];
	feed = feed_create(base, ends[1], "s", 1);
	return 0;
}

static int
close_feed(void **state)
{
	(void)state;
	feed_free(feed);
	if (reader >= 0)
		close(reader);
	event_base_free(base);
	return 0;
}

static void
test_bytes_come_in_order_and_end(void **state)
{
	struct feed_result result;

	(void)state;
	result = write_now(1, 3, 'a', false);
	assert_int_equal(result.accepted, 3);
	assert_int_equal(result.total, 4);
	assert_false(result.closed);
	result = write_now(2, 2, 'b', true);
	assert_int_equal(result.total, 6);
	assert_true(result.closed);
	read_fill(1, 's');
	read_fill(3, 'a');
	read_fill(2, 'b');
	expect_end();
}

static void
test_the_end_comes_behind_what_waits(void **state)
{
	(void)state;
	write_now(1, FEED_MAX_PENDING - 1, 'a', true);
	read_fill(1, 's');
	read_fill(FEED_MAX_PENDING - 1, 'a');
	expect_end();
}

static void
test_writers_wait_in_order_while_nothing_is_read(void **state)
{
	struct writer writers[3];
	struct feed_result result;

	(void)state;
	write_now(1, FEED_MAX_PENDING - 1, 'a', false);
	turn_loop();
	writer_wait(&writers[0], FEED_MAX_PENDING);
	writer_wait(&writers[1], 1);
	writer_wait(&writers[2], 0);
	turn_loop();
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(writers[i].open + writers[i].closed, 0);
	read_fill(1, 's');
	read_fill(FEED_MAX_PENDING - 1, 'a');
	turn_loop();
	assert_int_equal(writers[0].open, 1);
	assert_int_equal(writers[1].open, 0);
	assert_true(writer_write(&writers[0], 2, 'b', false, &result));
	assert_int_equal(writers[1].open, 1);
	assert_true(writer_write(&writers[1], 3, 'c', false, &result));
	assert_int_equal(writers[2].open, 1);
	assert_true(writer_write(&writers[2], 4, '-', true, &result));
	read_fill(FEED_MAX_PENDING, 'b');
	read_fill(1, 'c');
	expect_end();
}

static void
test_who_leaves_gives_its_turn_to_the_next(void **state)
{
	struct writer first, second, third;
	struct feed_result result;

	(void)state;
	writer_wait(&first, 10);
	writer_wait(&second, 10);
	writer_wait(&third, 10);
	assert_int_equal(first.open, 1);
	feed_leave(feed, &second.turn);
	assert_int_equal(third.open, 0);
	feed_leave(feed, &first.turn);
	assert_int_equal(third.open, 1);
	assert_true(writer_write(&third, 1, 'c', true, &result));
	assert_int_equal(result.total, 11);
	assert_int_equal(first.closed + second.closed + third.closed, 0);
	read_fill(1, 's');
	read_fill(10, 'c');
	expect_end();
}

static void
test_a_repeated_write_changes_nothing(void **state)
{
	const uint8_t id[16] = { 1 };
	struct feed_result first, again;
	struct writer writer;

	(void)state;
	first = write_now(1, 3, 'a', false);
	write_now(2, 3, 'b', false);
	writer_wait(&writer, 3);
	assert_true(writer_write(&writer, 1, 'x', true, &again));
	assert_memory_equal(&first, &again, sizeof first);
	feed_close(feed);
	memset(&again, 0, sizeof again);
	assert_true(feed_recall(feed, id, &again));
	assert_memory_equal(&first, &again, sizeof first);
	read_fill(1, 's');
	read_fill(3, 'a');
	read_fill(3, 'b');
	expect_end();
}

static void
test_the_last_results_are_remembered(void **state)
{
	struct feed_result result;

	(void)state;
	for (uint8_t i = 0; i <= FEED_MAX_RESULTS; i++)
		write_now(i, 1, 'a', false);
	assert_false(feed_recall(feed, (const uint8_t[16]){ 0 }, &result));
	for (uint8_t i = 1; i <= FEED_MAX_RESULTS; i++) {
		assert_true(feed_recall(feed, (const uint8_t[16]){ i }, &result));
		assert_int_equal(result.total, i + 2);
	}
}

static void
test_an_end_refuses_who_waits_and_who_comes(void **state)
{
	struct writer first, second, third;
	struct feed_result result;

	(void)state;
	writer_wait(&first, 1);
	writer_wait(&second, 1);
	assert_true(writer_write(&first, 1, 'a', true, &result));
	assert_int_equal(second.closed, 1);
	writer_wait(&third, 1);
	assert_int_equal(third.closed, 1);
}

static void
test_the_end_of_the_command_refuses_all(void **state)
{
	struct writer first, second;

	(void)state;
	write_now(1, FEED_MAX_PENDING - 1, 'a', false);
	writer_wait(&first, 1 << 19);
	writer_wait(&second, 1);
	feed_close(feed);
	feed_close(feed);
	assert_int_equal(first.closed, 1);
	assert_int_equal(second.closed, 1);
	assert_int_equal(first.open + second.open, 0);
}

static void
test_a_reader_that_closes_is_noticed(void **state)
{
	struct writer writers[2];
	struct feed_result result;

	(void)state;
	write_now(1, FEED_MAX_PENDING - 1, 'a', false);
	writer_wait(&writers[0], FEED_MAX_PENDING);
	close(reader);
	reader = -1;
	turn_loop();
	assert_int_equal(writers[0].closed, 1);
	writer_wait(&writers[1], 1);
	assert_int_equal(writers[1].closed, 1);
	assert_false(feed_recall(feed, (const uint8_t[16]){ 9 }, &result));
}

static void
test_a_write_behind_a_closed_reader_is_not_taken(void **state)
{
	struct feed_result result;
	struct writer writer;

	(void)state;
	turn_loop();
	writer_wait(&writer, 0);
	close(reader);
	reader = -1;
	assert_int_equal(writer.open, 1);
	assert_false(writer_write(&writer, 1, 'a', false, &result));
	assert_int_equal(writer.closed, 0);
	assert_false(feed_recall(feed, (const uint8_t[16]){ 1 }, &result));
}

static void
test_no_more_than_some_may_wait(void **state)
{
	static struct writer writers[FEED_MAX_WAITING + 1];

	(void)state;
	for (size_t i = 0; i < FEED_MAX_WAITING; i++)
		writer_wait(&writers[i], 1);
	assert_false(feed_wait(feed, &writers[FEED_MAX_WAITING].turn));
	feed_leave(feed, &writers[0].turn);
	writer_wait(&writers[0], 1);
	feed_close(feed);
	for (size_t i = 0; i < FEED_MAX_WAITING; i++)
		assert_int_equal(writers[i].closed, 1);
}

#define feed_test(name) cmocka_unit_test_setup_teardown(name, open_feed, close_feed)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		feed_test(test_bytes_come_in_order_and_end),
		feed_test(test_the_end_comes_behind_what_waits),
		feed_test(test_writers_wait_in_order_while_nothing_is_read),
		feed_test(test_who_leaves_gives_its_turn_to_the_next),
		feed_test(test_a_repeated_write_changes_nothing),
		feed_test(test_the_last_results_are_remembered),
		feed_test(test_an_end_refuses_who_waits_and_who_comes),
		feed_test(test_the_end_of_the_command_refuses_all),
		feed_test(test_no_more_than_some_may_wait),
		feed_test(test_a_reader_that_closes_is_noticed),
		feed_test(test_a_write_behind_a_closed_reader_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
