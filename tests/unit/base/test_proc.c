/* test_proc.c - a process is known by pid and start time, whatever its name is. */
/* SPDX-License-Identifier: MIT */
#include "base/id.h"
#include "base/proc.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void
test_own_process_is_alive_under_any_name(void **state)
{
	static const char *const names[] = { "a) R 1 2 (b", ")", "( ", "1 2 3", "\n) Z " };
	uint64_t start = proc_start_time(getpid());

	(void)state;
	assert_true(start > 0);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		assert_int_equal(prctl(PR_SET_NAME, names[i]), 0);
		assert_int_equal(proc_start_time(getpid()), start);
		assert_true(proc_is_alive(getpid(), start));
	}
	assert_false(proc_is_alive(getpid(), start + 1));
	assert_false(proc_is_alive(getpid(), 0));
}

static void
test_zombie_is_not_alive(void **state)
{
	siginfo_t info;
	pid_t pid = fork();
	uint64_t start;

	(void)state;
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	/* Waits for the end and leaves the zombie. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	start = proc_start_time(pid);
	assert_true(start > 0);
	assert_false(proc_is_alive(pid, start));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(proc_start_time(pid), 0);
	assert_false(proc_is_alive(pid, start));
}

static void
test_impossible_pids_are_nobody(void **state)
{
	(void)state;
	assert_int_equal(proc_start_time(0), 0);
	assert_int_equal(proc_start_time(-1), 0);
	assert_false(proc_is_alive(-1, 1));
}

static void
test_boot_id_is_a_uuid_and_stays(void **state)
{
	char a[37], b[37];

	(void)state;
	proc_boot_id(a);
	proc_boot_id(b);
	assert_true(id_is_uuid(a));
	assert_string_equal(a, b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_process_is_alive_under_any_name),
		cmocka_unit_test(test_zombie_is_not_alive),
		cmocka_unit_test(test_impossible_pids_are_nobody),
		cmocka_unit_test(test_boot_id_is_a_uuid_and_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
