/* test_clock.c - the boot clock never goes back, and the units are right. */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static void
test_boot_clock_counts_since_boot(void **state)
{
	struct timespec ts;
	int64_t before, after;

	(void)state;
	before = clock_boot_us();
	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &ts), 0);
	after = clock_boot_us();
	assert_true(before <= ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
	assert_true(after >= ts.tv_sec * 1000000 + ts.tv_nsec / 1000);
	assert_true(clock_boot_ms() >= before / 1000);
	assert_true(clock_boot_ms() <= clock_boot_us() / 1000);
}

static void
test_wall_clock_is_unix_time(void **state)
{
	time_t now = time(NULL);

	(void)state;
	assert_true(clock_wall() > (double)now - 2 && clock_wall() < (double)now + 60);
	assert_true(clock_wall_us() / 1000000 >= now - 2);
}

static void
test_timeval_is_split_and_never_negative(void **state)
{
	(void)state;
	assert_int_equal(clock_tv(1234567).tv_sec, 1234);
	assert_int_equal(clock_tv(1234567).tv_usec, 567000);
	assert_int_equal(clock_tv(0).tv_sec, 0);
	assert_int_equal(clock_tv(-5).tv_sec, 0);
	assert_int_equal(clock_tv(-5).tv_usec, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boot_clock_counts_since_boot),
		cmocka_unit_test(test_wall_clock_is_unix_time),
		cmocka_unit_test(test_timeval_is_split_and_never_negative),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
