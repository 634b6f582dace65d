/* test_privileges.c - what a worker has given up cannot be had again. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "master/privileges.h"

#include "base/err.h"
#include "master/service_user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* Runs check() as a dropped process; its result is the exit status, 0 being right. */
static int
as_service_user(int (*check)(const struct service_user *user))
{
	struct service_user user;
	struct err err;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(service_user_find("daemon", &user, &err), 0);
	pid = fork();
	if (pid == 0)
		_exit(privileges_drop(&user, 0, &err) < 0 ? 100 : check(&user));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
check_ids(const struct service_user *user)
{
	gid_t groups[SERVICE_USER_GROUPS];
	uid_t r, e, s;
	gid_t gr, ge, gs;

	if (getresuid(&r, &e, &s) < 0 || r != user->uid || e != user->uid || s != user->uid)
		return 1;
	if (getresgid(&gr, &ge, &gs) < 0 || gr != user->gid || ge != user->gid || gs != user->gid)
		return 2;
	if (getgroups(SERVICE_USER_GROUPS, groups) != user->group_count)
		return 3;
	return setuid(0) == 0 || seteuid(0) == 0 ? 4 : 0;
}

static void
test_ids_are_those_of_the_service_user(void **state)
{
	(void)state;
	assert_int_equal(as_service_user(check_ids), 0);
}

static int
check_capabilities(const struct service_user *user)
{
	AUTO_FILE *status = fopen("/proc/self/status", "re");
	char line[128];
	int seen = 0;

	(void)user;
	while (status != NULL && fgets(line, sizeof line, status) != NULL) {
		if (strncmp(line, "Cap", 3) == 0 && strtoull(strchr(line, ':') + 1, NULL, 16) != 0)
			return 1;
		seen += strncmp(line, "Cap", 3) == 0;
	}
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	return seen >= 4 ? 0 : 3;
}

static void
test_every_capability_set_is_empty(void **state)
{
	(void)state;
	assert_int_equal(as_service_user(check_capabilities), 0);
}

#ifndef ORCHARD_SANITIZED
static bool
refused(long rc)
{
	return rc < 0 && errno == EPERM;
}

static int
check_filter(const struct service_user *user)
{
	char *const argv[] = { (char[]){ "true" }, NULL };
	const char *preload = getenv("LD_PRELOAD");

	(void)user;
	/* Valgrind ends the process when an exec that it let pass fails. */
	if ((preload == NULL || strstr(preload, "vgpreload") == NULL) && !refused(execv("/bin/true", argv)))
		return 1;
	if (!refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)))
		return 2;
	if (!refused(unshare(CLONE_NEWUSER)))
		return 3;
	if (!refused(mount("none", "/", "tmpfs", 0, NULL)))
		return 4;
	return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0 ? 0 : 5;
}

static void
test_filter_refuses_programs_tracing_and_namespaces(void **state)
{
	(void)state;
	assert_int_equal(as_service_user(check_filter), 0);
}

static int
check_ordinary_life(const struct service_user *user)
{
	int status;
	pid_t pid = fork();

	(void)user;
	if (pid == 0)
		_exit(7);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 7 ? 0 : 1;
}

static void
test_filter_leaves_fork_and_wait_alone(void **state)
{
	(void)state;
	assert_int_equal(as_service_user(check_ordinary_life), 0);
}
#endif

static void
test_missing_user_tells_how_to_make_it(void **state)
{
	struct service_user user;
	struct err err;

	(void)state;
	assert_int_equal(service_user_find("no-such-user", &user, &err), -1);
	assert_non_null(strstr(err.msg, "useradd --system no-such-user"));
}

static void
test_root_is_no_service_user(void **state)
{
	struct service_user user;
	struct err err;

	(void)state;
	assert_int_equal(service_user_find("root", &user, &err), -1);
	assert_non_null(strstr(err.msg, "service_user"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_are_those_of_the_service_user),
		cmocka_unit_test(test_every_capability_set_is_empty),
#ifndef ORCHARD_SANITIZED
		cmocka_unit_test(test_filter_refuses_programs_tracing_and_namespaces),
		cmocka_unit_test(test_filter_leaves_fork_and_wait_alone),
#endif
		cmocka_unit_test(test_missing_user_tells_how_to_make_it),
		cmocka_unit_test(test_root_is_no_service_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
