/* test_file_tree.c - trees of hostile shape go away, and only they. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_file_tree.XXXXXX";
static int dfd = -1;

static int
make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL || chmod(dir, 0777) < 0)
		return -1;
	dfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dfd < 0 ? -1 : 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	close(dfd);
	return rmdir(dir);
}

static void
touch(int at, const char *name)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

static bool
exists(const char *name)
{
	struct stat st;

	return fstatat(dfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
remove_tree(const char *name)
{
	struct err err;

	if (file_remove_tree_at(dfd, name, &err) < 0)
		fail_msg("%s", err.msg);
	assert_false(exists(name));
}

/* Makes name and `depth` directories "d" below each other in it, a file in each. */
static void
make_deep(const char *name, int depth)
{
	int fd, next;

	assert_int_equal(mkdirat(dfd, name, 0755), 0);
	fd = openat(dfd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < depth; i++) {
		touch(fd, "file");
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

static void
test_missing_tree_is_fine(void **state)
{
	(void)state;
	remove_tree("none");
}

static void
test_single_files_links_and_sockets_go(void **state)
{
	(void)state;
	touch(dfd, "file");
	remove_tree("file");
	assert_int_equal(mkdirat(dfd, "empty", 0), 0);
	remove_tree("empty");
	assert_int_equal(symlinkat("/etc", dfd, "link"), 0);
	remove_tree("link");
	assert_int_equal(access("/etc/passwd", R_OK), 0);
	assert_int_equal(mkfifoat(dfd, "fifo", 0600), 0);
	remove_tree("fifo");
}

static void
test_links_are_removed_not_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(dfd, "outside", 0755), 0);
	assert_int_equal(mkdirat(dfd, "tree", 0755), 0);
	assert_int_equal(mkdirat(dfd, "tree/in", 0755), 0);
	touch(dfd, "outside/keep");
	assert_int_equal(symlinkat("../outside", dfd, "tree/a"), 0);
	assert_int_equal(symlinkat("../../outside", dfd, "tree/in/b"), 0);
	assert_int_equal(symlinkat(".", dfd, "tree/loop"), 0);
	assert_int_equal(symlinkat("/nonexistent", dfd, "tree/dangling"), 0);
	remove_tree("tree");
	assert_true(exists("outside/keep"));
	remove_tree("outside");
}

static void
test_tree_10000_deep_needs_few_descriptors_and_little_stack(void **state)
{
	struct rlimit files, few;

	(void)state;
	make_deep("deep", 10000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	few = files;
	few.rlim_cur = 64;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	remove_tree("deep");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
}

static void
test_several_deep_branches_go(void **state)
{
	(void)state;
	/* Deeper than the levels that stay open, and branching below that. */
	make_deep("comb", 40);
	for (int depth = 30; depth <= 40; depth++) {
		int fd = openat(dfd, "comb", O_RDONLY | O_DIRECTORY | O_CLOEXEC), next;

		for (int i = 0; i < depth; i++) {
			next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			assert_true(next >= 0);
			close(fd);
			fd = next;
		}
		for (int i = 0; i < 50; i++) {
			char name[16];

			snprintf(name, sizeof name, "e%d", i);
			assert_int_equal(mkdirat(fd, name, 0755), 0);
			next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			touch(next, "file");
			close(next);
		}
		close(fd);
	}
	remove_tree("comb");
}

static void
test_wide_directory_goes(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(dfd, "wide", 0755), 0);
	for (int i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof name, "wide/%d", i);
		touch(dfd, name);
	}
	remove_tree("wide");
}

/* Runs without privileges: 0 when the tree went. */
static int
remove_closed_tree_unprivileged(void)
{
	struct err err;

	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 2;
	if (mkdirat(dfd, "closed", 0755) < 0 || mkdirat(dfd, "closed/a", 0755) < 0 ||
		mkdirat(dfd, "closed/a/b", 0755) < 0 || mkdirat(dfd, "closed/a/b/c", 0755) < 0)
		return 3;
	if (fchmodat(dfd, "closed/a/b/c", 0, 0) < 0 || fchmodat(dfd, "closed/a/b", 0500, 0) < 0 ||
		fchmodat(dfd, "closed/a", 0, 0) < 0 || fchmodat(dfd, "closed", 0500, 0) < 0)
		return 4;
	if (file_remove_tree_at(dfd, "closed", &err) < 0) {
		return 5;
	}
	return 0;
}

static void
test_unsearchable_directories_are_opened_up(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(remove_closed_tree_unprivileged());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_false(exists("closed"));
}

/* Mounts are made in a namespace of the child's own, so nothing stays if it fails. */
static int
refuse_mounted(const char *fstype, const char *source, unsigned long flags)
{
	char target[64], inside[80], tree[64];
	struct err err;

	snprintf(target, sizeof target, "%s/mounted/at", dir);
	snprintf(inside, sizeof inside, "%s/precious", target);
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") < 0)
		return 77;
	if (mount(source, target, fstype, flags, "") < 0)
		return 77;
	touch(AT_FDCWD, inside);
	/* dfd belongs to the namespace without the mount. */
	snprintf(tree, sizeof tree, "%s/mounted", dir);
	if (file_remove_tree_at(AT_FDCWD, tree, &err) == 0)
		return 3;
	if (err.code != ERR_CONFLICT || strstr(err.msg, "mount") == NULL)
		return 4;
	return access(inside, F_OK) == 0 ? 0 : 5;
}

static void
check_mounted(const char *fstype, const char *source, unsigned long flags)
{
	int status;
	pid_t pid;

	assert_int_equal(mkdirat(dfd, "mounted", 0755), 0);
	assert_int_equal(mkdirat(dfd, "mounted/at", 0755), 0);
	assert_int_equal(mkdirat(dfd, "other", 0755), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(refuse_mounted(fstype, source, flags));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_tree("mounted");
	remove_tree("other");
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
test_another_filesystem_is_not_touched(void **state)
{
	(void)state;
	check_mounted("tmpfs", "none", 0);
}

static void
test_bind_mount_of_the_same_filesystem_is_not_touched(void **state)
{
	char source[64];

	(void)state;
	snprintf(source, sizeof source, "%s/other", dir);
	check_mounted("none", source, MS_BIND);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missing_tree_is_fine),
		cmocka_unit_test(test_single_files_links_and_sockets_go),
		cmocka_unit_test(test_links_are_removed_not_followed),
		cmocka_unit_test(test_tree_10000_deep_needs_few_descriptors_and_little_stack),
		cmocka_unit_test(test_several_deep_branches_go),
		cmocka_unit_test(test_wide_directory_goes),
		cmocka_unit_test(test_unsearchable_directories_are_opened_up),
		cmocka_unit_test(test_another_filesystem_is_not_touched),
		cmocka_unit_test(test_bind_mount_of_the_same_filesystem_is_not_touched),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
