/* test_fork.c - what a process has for itself, its children do not have. */
/* SPDX-License-Identifier: MIT */
#include "base/fork.h"
#include "base/id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The exit status of a child that runs check(arg). */
static int
in_child(int (*check)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(check(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
memory_is_empty(void *arg)
{
	return *(int *)arg == 0 ? 0 : 1;
}

static void
test_memory_is_empty_in_a_child(void **state)
{
	int *mine = fork_private(sizeof *mine), *other = fork_private(1);

	(void)state;
	if (mine == NULL)
		skip();
	assert_int_equal(*mine, 0);
	assert_ptr_not_equal(mine, other);
	*mine = 7;
	assert_int_equal(in_child(memory_is_empty, mine), 0);
	assert_int_equal(*mine, 7);
	assert_null(fork_private(1 << 20));
}

static int
pid_is_own(void *arg)
{
	pid_t parent = *(pid_t *)arg;

	return fork_pid() == getpid() && fork_pid() != parent ? 0 : 1;
}

static void
test_pid_is_that_of_the_process_itself(void **state)
{
	pid_t pid = fork_pid();

	(void)state;
	assert_int_equal(pid, getpid());
	assert_int_equal(in_child(pid_is_own, &pid), 0);
	assert_int_equal(fork_pid(), pid);
}

static int
send_ids(void *arg)
{
	char id[ID_UUID_SIZE];

	for (int i = 0; i < 200; i++) {
		id_uuid4(id);
		if (write(*(int *)arg, id, sizeof id) != sizeof id)
			return 1;
	}
	return 0;
}

/* Parent and child draw on after the fork: neither repeats the other. */
static void
test_a_fork_repeats_no_id(void **state)
{
	char theirs[200][ID_UUID_SIZE], mine[ID_UUID_SIZE];
	int pipe_fds[2];

	(void)state;
	id_uuid4(mine);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(in_child(send_ids, &pipe_fds[1]), 0);
	assert_int_equal(read(pipe_fds[0], theirs, sizeof theirs), sizeof theirs);
	for (int i = 0; i < 200; i++) {
		id_uuid4(mine);
		for (int j = 0; j < 200; j++)
			assert_string_not_equal(mine, theirs[j]);
	}
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory_is_empty_in_a_child),
		cmocka_unit_test(test_pid_is_that_of_the_process_itself),
		cmocka_unit_test(test_a_fork_repeats_no_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
