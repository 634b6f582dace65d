/* test_disk.c - measuring a tree that strangers made. */
/* SPDX-License-Identifier: MIT */
#include "spawner/disk/disk_usage.h"

#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cmocka.h>

enum { DEEP = 1200, TOO_DEEP = DISK_USAGE_DEPTH + 10 };

static int base;
static char base_name[] = "/tmp/test-disk-XXXXXX";

static int
set_up(void **state)
{
	(void)state;
	strcpy(strrchr(base_name, '-'), "-XXXXXX");
	if (mkdtemp(base_name) == NULL)
		return -1;
	base = open(base_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return mkdirat(base, "tree", 0755);
}

static int
tear_down(void **state)
{
	struct err err;

	(void)state;
	close(base);
	return file_remove_tree_at(AT_FDCWD, base_name, &err);
}

static int64_t
usage(void)
{
	int64_t bytes = -1;
	struct err err;

	if (disk_usage(base, "tree", &bytes, &err) != 0)
		fail_msg("%s", err.msg);
	return bytes;
}

static void
write_file(const char *path, size_t len)
{
	AUTO_FD fd = openat(base, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	AUTO_FREE char *data = calloc(1, len + 1);

	assert_true(fd >= 0 && data != NULL);
	memset(data, 'x', len);
	assert_int_equal(file_write_all(fd, data, len), 0);
}

static void
test_content_counts_once(void **state)
{
	int64_t empty = usage(), one;

	(void)state;
	write_file("tree/a", 1 << 20);
	one = usage();
	assert_in_range(one - empty, 1 << 20, (1 << 20) + (64 << 10));
	assert_int_equal(linkat(base, "tree/a", base, "tree/b", 0), 0);
	assert_int_equal(linkat(base, "tree/a", base, "tree/c", 0), 0);
	assert_in_range(usage() - empty, 1 << 20, (1 << 20) + (64 << 10));
	assert_int_equal(symlinkat("..", base, "tree/loop"), 0);
	assert_in_range(usage() - empty, 1 << 20, (1 << 20) + (128 << 10));
}

static void
test_every_file_counts(void **state)
{
	int64_t empty = usage();
	char path[32];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		snprintf(path, sizeof path, "tree/%d", i);
		write_file(path, 0);
	}
	assert_true(usage() - empty >= 1000 * 4096);
}

static void
test_holes_do_not_count(void **state)
{
	AUTO_FD fd = openat(base, "tree/hole", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0);
	assert_in_range(usage(), 0, 1 << 20);
}

static void
nest(int levels)
{
	int fd = openat(base, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
}

/* The server starts with all the descriptors that it may have. */
static void
allow_descriptors(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_max < 2 * DISK_USAGE_DEPTH)
		skip();
}

static void
test_as_deep_as_a_path_is_measured(void **state)
{
	(void)state;
	allow_descriptors();
	nest(DEEP);
	assert_in_range(usage(), DEEP * 4096, DEEP * 64 * 1024);
}

/* No way to measure it, so it is more than any limit; the walk ends all the same. */
static void
test_too_deep_is_too_much(void **state)
{
	(void)state;
	allow_descriptors();
	nest(TOO_DEEP);
	assert_true(usage() == INT64_MAX);
}

static void
test_missing_is_an_error(void **state)
{
	int64_t bytes;
	struct err err;

	(void)state;
	assert_int_equal(disk_usage(base, "none", &bytes, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_content_counts_once),
		TEST(test_every_file_counts),
		TEST(test_holes_do_not_count),
		TEST(test_as_deep_as_a_path_is_measured),
		TEST(test_too_deep_is_too_much),
		TEST(test_missing_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
