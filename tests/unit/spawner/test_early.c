/* test_early.c - an init gets the pid of one that was reaped with a failed create. In a pid namespace of its own. */
/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include "base/err.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SKIP = 77, PIDS_MAX = 32 };
#define LAST_PID "/proc/sys/kernel/ns_last_pid"

static int
set_up(void **state)
{
	static struct bed bed;

	bed_open(&bed);
	bed_set(&bed, "SANDBOX_BLANKS", "0"); /* each is made of a new process */
	bed_start_spawner(&bed);
	*state = &bed;
	return 0;
}

static int
tear_down(void **state)
{
	bed_close(*state);
	return 0;
}

static int
last_pid(void)
{
	char text[32] = "";
	AUTO_FD fd = open(LAST_PID, O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof text - 1) > 0);
	return atoi(text);
}

static void
set_last_pid(int pid)
{
	AUTO_FD fd = open(LAST_PID, O_WRONLY | O_CLOEXEC);

	assert_true(dprintf(fd, "%d", pid) > 0);
}

static void
fail_a_create(struct bed *bed)
{
	struct spawn_create create;
	struct spawn_item item;
	struct bed_box box;

	bed_fill_create(bed, &create, &box);
	snprintf(create.image, sizeof create.image, "dir:%s/bad", bed->dir);
	assert_int_not_equal(bed_create(bed, &create, NULL), ERR_NONE);
	for (int i = 0; i < 2; i++) /* by then its init is reaped */
		assert_false(bed_find(bed, box.uid, &item));
}

static void
test_the_pid_of_a_failed_create_serves_another(void **state)
{
	struct bed *bed = *state;
	int first, last, again = 0;

	assert_int_equal(run_shell("cd %s && mkdir bad && touch bad/proc", bed->dir), 0);
	first = last_pid() + 1;
	fail_a_create(bed);
	last = last_pid();
	assert_in_range(last - first, 0, PIDS_MAX);
	for (int pid = first; pid <= last; pid++) {
		struct spawn_item item;
		struct bed_box box;

		set_last_pid(pid - 1);
		assert_int_equal(bed_make(bed, &box), ERR_NONE);
		again += box.made.pid >= first && box.made.pid <= last;
		assert_true(bed_find(bed, box.uid, &item));
		assert_true(item.alive);
		assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	}
	assert_true(again > 0);
}

static int
run_inside(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_pid_of_a_failed_create_serves_another, set_up, tear_down),
	};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("proc", "/proc", "proc", 0, NULL) != 0)
		return 1;
	if (access(LAST_PID, W_OK) != 0) {
		fprintf(stderr, "SKIPPED: this kernel does not let pids be chosen (" LAST_PID ")\n");
		return SKIP;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

int
main(void)
{
	int status = 0;
	pid_t pid;

	bed_require_root();
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
		return 1;
	pid = fork();
	if (pid == 0)
		exit(run_inside());
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	/* A leak checker makes a process to look at this one, which it can't: the namespace for its children has ended. */
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}
