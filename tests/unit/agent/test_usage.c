/* test_usage.c - what cgroups of both versions tell of their container, and which of them are no container's. */
/* SPDX-License-Identifier: MIT */
#include "agent/usage.h"
#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void
put(const char *root, const char *name, const char *text)
{
	char path[PATH_MAX];
	struct err err;
	int fd;

	snprintf(path, sizeof path, "%s/%s", root, name);
	*strrchr(path, '/') = '\0';
	assert_int_equal(file_mkdirs(path, 0755, &err), 0);
	snprintf(path, sizeof path, "%s/%s", root, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

/* Whom a group holds: this process among others, or only others. */
static void
put_procs(const char *root, const char *name, bool ours)
{
	char text[64];

	snprintf(text, sizeof text, ours ? "%d\n1%d\n" : "1%d\n%d0\n", (int)getpid(), (int)getpid());
	put(root, name, text);
}

static void
put_v2(const char *root, bool ours)
{
	put_procs(root, "cgroup.procs", ours);
	put(root, "cgroup.controllers", "cpu memory pids\n");
	put(root, "cgroup.events", "populated 1\n");
	put(root, "cpu.stat", "usage_usec 1250000\nuser_usec 1000000\nsystem_usec 250000\n");
	put(root, "memory.current", "1234\n");
	put(root, "memory.peak", "2345\n");
	put(root, "pids.current", "3\n");
}

static void
put_v1(const char *root, const char *cpu, bool ours)
{
	char name[64];

	put_procs(root, "memory/cgroup.procs", ours);
	put(root, "memory/memory.usage_in_bytes", "1234\n");
	put(root, "memory/memory.max_usage_in_bytes", "2345\n");
	put_procs(root, "pids/cgroup.procs", ours);
	put(root, "pids/pids.current", "3\n");
	snprintf(name, sizeof name, "%s/cgroup.procs", cpu);
	put_procs(root, name, ours);
	snprintf(name, sizeof name, "%s/cpuacct.usage", cpu);
	put(root, name, "1250000999\n");
}

static void
assert_told(const char *root, const char *wanted)
{
	struct usage *usage = usage_open(root);
	struct json_object *body = usage_json(usage);

	assert_string_equal(json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN), wanted);
	json_object_put(body);
	usage_close(usage);
}

#define ALL "{\"cpu_us\":1250000,\"memory_bytes\":1234,\"memory_peak_bytes\":2345,\"pids\":3}"

static int
setup(void **state)
{
	char *root = strdup("/tmp/test-usage-XXXXXX");

	*state = root;
	return mkdtemp(root) != NULL ? 0 : -1;
}

static int
teardown(void **state)
{
	struct err err;
	int rc = file_remove_tree_at(AT_FDCWD, *state, &err);

	free(*state);
	return rc;
}

static void
test_version_2_tells_all(void **state)
{
	put_v2(*state, true);
	assert_told(*state, ALL);
}

static void
test_version_1_tells_all(void **state)
{
	put_v1(*state, "cpuacct", true);
	assert_told(*state, ALL);
}

static void
test_version_1_with_two_controllers_in_one_place(void **state)
{
	put_v1(*state, "cpu,cpuacct", true);
	assert_told(*state, ALL);
}

static void
test_what_is_not_counted_is_not_told(void **state)
{
	char path[PATH_MAX];

	put_v2(*state, true);
	put(*state, "cpu.stat", "nr_periods 7\n");
	put(*state, "memory.current", "max\n");
	put(*state, "pids.current", "");
	snprintf(path, sizeof path, "%s/memory.peak", (const char *)*state);
	assert_int_equal(unlink(path), 0);
	assert_told(*state, "{}");
	put(*state, "pids.current", "-1\n");
	put(*state, "memory.current", "99999999999999999999\n");
	put(*state, "cpu.stat", "usage_usec 5\n");
	assert_told(*state, "{\"cpu_us\":5}");
}

static void
test_groups_of_others_are_not_told(void **state)
{
	put_v2(*state, false);
	put_v1(*state, "cpuacct", false);
	assert_told(*state, "{}");
}

static void
test_the_whole_machine_is_not_told(void **state)
{
	char path[PATH_MAX];

	put_v2(*state, true);
	snprintf(path, sizeof path, "%s/cgroup.events", (const char *)*state);
	assert_int_equal(unlink(path), 0);
	put_v1(*state, "cpuacct", true);
	put(*state, "memory/release_agent", "\n");
	put(*state, "cpuacct/release_agent", "\n");
	assert_told(*state, "{\"pids\":3}");
}

static void
test_it_is_read_anew_each_time(void **state)
{
	struct usage *usage;
	struct json_object *body;

	put_v2(*state, true);
	usage = usage_open(*state);
	put(*state, "pids.current", "12\n");
	body = usage_json(usage);
	assert_int_equal(json_object_get_int(json_object_object_get(body, "pids")), 12);
	json_object_put(body);
	usage_close(usage);
}

static void
test_without_cgroups_nothing_is_told(void **state)
{
	char path[PATH_MAX];
	struct json_object *body = usage_json(NULL);

	assert_told(*state, "{}");
	snprintf(path, sizeof path, "%s/missing", (const char *)*state);
	assert_told(path, "{}");
	assert_int_equal(json_object_object_length(body), 0);
	json_object_put(body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_version_2_tells_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_version_1_tells_all, setup, teardown),
		cmocka_unit_test_setup_teardown(test_version_1_with_two_controllers_in_one_place, setup, teardown),
		cmocka_unit_test_setup_teardown(test_what_is_not_counted_is_not_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups_of_others_are_not_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_whole_machine_is_not_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_it_is_read_anew_each_time, setup, teardown),
		cmocka_unit_test_setup_teardown(test_without_cgroups_nothing_is_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
