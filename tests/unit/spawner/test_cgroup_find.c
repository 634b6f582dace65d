/* test_cgroup_find.c - our place in the hierarchies, read from texts of hosts of every kind. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup_find.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const char pure[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
static const char hybrid[] = "30 23 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
			     "31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
			     "32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
			     "33 30 0:29 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

static void
expect(const char *cgroups, const char *mounts, const char *controller, const char *parent, const char *path)
{
	char found[512];

	assert_true(cgroup_find_in(cgroups, mounts, controller, parent, found, sizeof found));
	assert_string_equal(found, path);
}

static void
test_v2_place_is_found(void **state)
{
	(void)state;
	expect("0::/system.slice/o.service\n", pure, NULL, "", "/sys/fs/cgroup/system.slice/o.service");
	expect("0::/a\n", pure, NULL, "/boxes", "/sys/fs/cgroup/boxes");
}

static void
test_later_spawner_in_the_leaf_finds_the_same_place(void **state)
{
	(void)state;
	expect("0::/o.service/" CGROUP_LEAF "\n", pure, NULL, "", "/sys/fs/cgroup/o.service");
	expect("0::/" CGROUP_LEAF "\n", pure, NULL, "", "/sys/fs/cgroup/");
	expect("0::/x-" CGROUP_LEAF "\n", pure, NULL, "", "/sys/fs/cgroup/x-" CGROUP_LEAF);
}

static void
test_hybrid_has_each_controller_at_its_own_place(void **state)
{
	static const char cgroups[] = "4:memory:/docker/x/o\n3:cpu,cpuacct:/c\n0::/u\n";
	char found[512];

	(void)state;
	expect(cgroups, hybrid, NULL, "", "/sys/fs/cgroup/unified/u");
	expect(cgroups, hybrid, "cpu", "", "/sys/fs/cgroup/cpu,cpuacct/c");
	expect(cgroups, hybrid, "memory", "", "/sys/fs/cgroup/memory/o");
	assert_false(cgroup_find_in(cgroups, hybrid, "pids", "", found, sizeof found));
}

static void
test_mount_that_does_not_show_our_place_is_no_place(void **state)
{
	char found[512];

	(void)state;
	assert_false(cgroup_find_in("4:memory:/docker/xy\n", hybrid, "memory", "", found, sizeof found));
	assert_false(cgroup_find_in("", pure, NULL, "", found, sizeof found));
	assert_false(cgroup_find_in("0::/a\n", "", NULL, "", found, sizeof found));
	assert_false(cgroup_find_in("0::/a\n", pure, NULL, "", found, 8));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v2_place_is_found),
		cmocka_unit_test(test_later_spawner_in_the_leaf_finds_the_same_place),
		cmocka_unit_test(test_hybrid_has_each_controller_at_its_own_place),
		cmocka_unit_test(test_mount_that_does_not_show_our_place_is_no_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
