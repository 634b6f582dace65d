/* test_cage.c - what a process that unpacks a layer can't do any more, should somebody take it over. */
/* SPDX-License-Identifier: MIT */
#include "layout_kit.h"

#include "image/unpack_cage.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <cmocka.h>

/* Runs check in a caged child; it returns NULL, or what went wrong. */
static void
in_cage(const char *(*check)(int layer))
{
	char dir[128], said[256] = "";
	int ends[2], layer;
	struct err err;
	pid_t pid;

	snprintf(dir, sizeof dir, "%s/layer", kit_dir);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		const char *what;

		if (cage_enter(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), &layer, &err) != 0)
			what = err.msg;
		else
			what = check(layer);
		if (what != NULL && write(ends[1], what, strlen(what)) < 0)
			_exit(2);
		_exit(0);
	}
	close(ends[1]);
	assert_true(read(ends[0], said, sizeof said - 1) >= 0);
	close(ends[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_string_equal(said, "");
}

static const char *
check_files(int layer)
{
	struct stat top, up;

	if (access("/etc", F_OK) == 0 || access("/proc/self", F_OK) == 0)
		return "files of the host are in sight";
	if (stat("/", &top) != 0 || fstatat(layer, "../../..", &up, 0) != 0 || top.st_ino != up.st_ino ||
		top.st_dev != up.st_dev)
		return "the layer's parent is not the cage";
	if (mkdir("/new", 0700) == 0 || errno != EROFS)
		return "the cage's root can be written";
	if (mkdirat(layer, "new", 0700) != 0)
		return "the layer can't be written";
	return NULL;
}

static const char *
check_rights(int layer)
{
	if (mknodat(layer, "disk", S_IFBLK | 0600, makedev(8, 0)) == 0)
		return "a device can be made";
	if (mknodat(layer, "whiteout", S_IFCHR, makedev(0, 0)) != 0)
		return "a whiteout can't be made";
	if (mount("tmpfs", "/layer", "tmpfs", 0, NULL) == 0)
		return "something can be mounted";
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0)
		return "a socket can be made";
	if (unshare(CLONE_NEWUSER) == 0)
		return "a user namespace can be made";
	if (fork() >= 0)
		return "a process can be made";
	if (chroot("/layer") == 0)
		return "the root can be changed";
	if (setuid(0) != 0 || setuid(12) == 0)
		return "the user can be changed";
	return NULL;
}

static void
test_the_cage_shows_the_layer_and_nothing_else(void **state)
{
	(void)state;
	in_cage(check_files);
}

static void
test_the_cage_takes_all_rights_but_those_over_files(void **state)
{
	(void)state;
	in_cage(check_rights);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_the_cage_shows_the_layer_and_nothing_else, kit_set_up, kit_tear_down),
		cmocka_unit_test_setup_teardown(
			test_the_cage_takes_all_rights_but_those_over_files, kit_set_up, kit_tear_down),
	};

	kit_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
