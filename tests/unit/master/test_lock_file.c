/* test_lock_file.c - the lock is held by a whole server, and let go by its last process. */
/* SPDX-License-Identifier: MIT */
#include "master/lock_file.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[] = "/tmp/test-lock-XXXXXX";
static char path[64];

static int
make_dir(void **state)
{
	sigset_t leave;

	(void)state;
	sigemptyset(&leave);
	sigaddset(&leave, SIGTERM);
	sigaddset(&leave, SIGINT);
	sigprocmask(SIG_BLOCK, &leave, NULL);
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/lock", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir);
}

/* A process that holds the lock until *ret_hold is closed. */
static pid_t
start_holder(int *ret_hold)
{
	int hold[2];
	int told[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct err err;
		int fd;

		close(hold[1]);
		if (lock_file_take(path, "state_dir /x", 0, &fd, &err) < 0 || write(told[1], "x", 1) != 1)
			_exit(1);
		_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(hold[0]);
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	*ret_hold = hold[1];
	return pid;
}

static void
end_holder(pid_t pid, int hold)
{
	int status;

	close(hold);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void
test_second_taker_is_told_the_pid(void **state)
{
	char words[64];
	struct err err;
	int fd = -1;
	int hold;
	pid_t pid = start_holder(&hold);

	(void)state;
	snprintf(words, sizeof words, "pid %d) uses state_dir /x", (int)pid);
	assert_int_equal(lock_file_take(path, "state_dir /x", 0, &fd, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_non_null(strstr(err.msg, words));
	assert_int_equal(fd, -1);
	end_holder(pid, hold);
}

static void
test_taker_waits_for_one_that_is_leaving(void **state)
{
	struct err err;
	AUTO_FD fd = -1;
	int hold;
	pid_t pid = start_holder(&hold);

	(void)state;
	assert_int_equal(lock_file_take(path, "state_dir /x", 0, &fd, &err), -1);
	close(hold);
	assert_int_equal(lock_file_take(path, "state_dir /x", 10000, &fd, &err), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
test_what_is_no_plain_file_is_refused_at_once(void **state)
{
	struct err err;
	int fd = -1;

	(void)state;
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(lock_file_take(path, "state_dir /x", 10000, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "no plain file"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(lock_file_take(path, "state_dir /x", 10000, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "no plain file"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(lock_file_take(path, "state_dir /x", 10000, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "no plain file"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(fd, -1);
}

/* The holder's child keeps the lock after the holder is gone, and the message says so. */
static void
test_lock_lives_as_long_as_the_last_process(void **state)
{
	int hold[2];
	int fd = -1;
	struct err err;
	pid_t pid;
	char byte = 0;

	(void)state;
	assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(hold[1]);
		if (lock_file_take(path, "state_dir /x", 0, &fd, &err) < 0)
			_exit(1);
		if (fork() == 0)
			_exit(read(hold[0], &byte, 1) == 0 ? 0 : 1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(lock_file_take(path, "state_dir /x", 0, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "processes of an earlier orchardd"));
	close(hold[1]);
	assert_int_equal(lock_file_take(path, "state_dir /x", 10000, &fd, &err), 0);
	close(fd);
	close(hold[0]);
}

static void
test_term_ends_the_wait(void **state)
{
	struct err err;
	int fd = -1;
	int hold;
	pid_t pid = start_holder(&hold);

	(void)state;
	raise(SIGTERM);
	assert_int_equal(lock_file_take(path, "state_dir /x", 60000, &fd, &err), -1);
	assert_non_null(strstr(err.msg, "asked to stop"));
	end_holder(pid, hold);
}

static void
test_inherited_descriptor_cannot_write(void **state)
{
	AUTO_FD fd = -1;
	struct err err;

	(void)state;
	assert_int_equal(lock_file_take(path, "state_dir /x", 0, &fd, &err), 0);
	assert_int_equal(write(fd, "1", 1), -1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_second_taker_is_told_the_pid),
		cmocka_unit_test(test_taker_waits_for_one_that_is_leaving),
		cmocka_unit_test(test_what_is_no_plain_file_is_refused_at_once),
		cmocka_unit_test(test_lock_lives_as_long_as_the_last_process),
		cmocka_unit_test(test_term_ends_the_wait),
		cmocka_unit_test(test_inherited_descriptor_cannot_write),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
