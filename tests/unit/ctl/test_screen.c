/* test_screen.c - output before a terminal that is slow, or gone: in order, whole, and never waited for. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/screen.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROUNDS = 400, PIECE = 1000 };

static void
test_a_slow_one_gets_all_in_order(void **state)
{
	struct screen screen;
	unsigned char piece[PIECE], expected = 0;
	size_t read_len = 0;
	ssize_t n;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	screen_init(&screen, fds[1]);
	for (size_t i = 0; i < ROUNDS; i++) {
		for (size_t j = 0; j < PIECE; j++)
			piece[j] = (unsigned char)(i * PIECE + j);
		screen_write(&screen, piece, PIECE);
	}
	assert_true(screen_waiting(&screen) > 0);
	while (read_len < ROUNDS * PIECE) {
		n = read(fds[0], piece, PIECE);
		assert_true(n > 0);
		for (ssize_t j = 0; j < n; j++)
			assert_int_equal(piece[j], expected++);
		read_len += (size_t)n;
		screen_push(&screen);
	}
	assert_int_equal(screen_waiting(&screen), 0);
	assert_int_equal(read(fds[0], piece, 1), -1);
	screen_fini(&screen);
	close(fds[0]);
	close(fds[1]);
}

static void
test_one_that_is_gone_takes_nothing_and_holds_nothing(void **state)
{
	struct screen screen;
	int fds[2];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	close(fds[0]);
	screen_init(&screen, fds[1]);
	screen_write(&screen, "words", 5);
	assert_true(screen.broken);
	screen_write(&screen, "more", 4);
	assert_int_equal(screen_waiting(&screen), 0);
	screen_fini(&screen);
	close(fds[1]);
}

static void
test_draining_ends_when_somebody_says_so(void **state)
{
	static char much[1 << 20];
	struct screen screen;
	int fds[2], stop[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	assert_int_equal(pipe(stop), 0);
	assert_int_equal(write(stop[1], "x", 1), 1);
	screen_init(&screen, fds[1]);
	screen_write(&screen, much, sizeof much);
	screen_drain(&screen, stop[0], 60000);
	assert_true(screen_waiting(&screen) > 0);
	screen_fini(&screen);
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(stop[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_slow_one_gets_all_in_order),
		cmocka_unit_test(test_one_that_is_gone_takes_nothing_and_holds_nothing),
		cmocka_unit_test(test_draining_ends_when_somebody_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
