/* test_walls.c - what a sandbox sees and may do, asked from inside and read from outside. */
/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include "base/err.h"

#include <dirent.h>
#include <setjmp.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cmocka.h>

static struct bed bed;
static struct bed_box box;

static int
set_up(void **state)
{
	(void)state;
	bed_open(&bed);
	setenv("SPAWNER_TEST_SECRET", "not for sandboxes", 1);
	bed_start_spawner(&bed);
	assert_int_equal(bed_make(&bed, &box), ERR_NONE);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(bed_destroy(&bed, &box), ERR_NONE);
	bed_close(&bed);
	return 0;
}

static void
expect(const char *command, const char *output)
{
	bed_expect(&box, command, output);
}

/* A field of /proc/PID/status of the agent, without its name. */
static void
agent_status(const char *field, char *buf, size_t size)
{
	char path[64], line[256];
	AUTO_FILE *file;

	snprintf(path, sizeof path, "/proc/%lld/status", (long long)box.made.pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof line, file) != NULL) {
		if (strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':') {
			snprintf(buf, size, "%s", line + strlen(field) + 2);
			buf[strcspn(buf, "\n")] = '\0';
			return;
		}
	}
	fail_msg("no %s", field);
}

static void
expect_status(const char *field, const char *value)
{
	char found[256], command[128], inside[260];

	agent_status(field, found, sizeof found);
	assert_string_equal(found, value);
	snprintf(command, sizeof command, "busybox awk '/^%s:/ {print $2}' /proc/self/status", field);
	snprintf(inside, sizeof inside, "%s\n", value);
	expect(command, inside);
}

static void
test_rights_are_those_of_a_container(void **state)
{
	(void)state;
	expect_status("NoNewPrivs", "1");
	expect_status("Seccomp", "2");
	expect_status("CapBnd", "00000000a80425fb");
	expect_status("CapPrm", "00000000a80425fb");
	expect_status("CapEff", "00000000a80425fb");
	expect_status("CapInh", "0000000000000000");
	expect_status("CapAmb", "0000000000000000");
}

/* From a directory, climbing never leads to our root. */
static bool
is_cut_loose(const char *path)
{
	char top[600];
	struct stat own, above, root;

	snprintf(top, sizeof top, "%s/../../../../../../../../../../../../../../../..", path);
	return stat(path, &own) == 0 && S_ISDIR(own.st_mode) && stat(top, &above) == 0 && stat("/", &root) == 0 &&
		(above.st_dev != root.st_dev || above.st_ino != root.st_ino);
}

/* A file of its groups: the files have no directory to climb from. */
static bool
is_own_file(const char *path, const char *target)
{
	struct stat st;
	struct statfs fs;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && statfs(path, &fs) == 0 &&
		(fs.f_type == CGROUP2_SUPER_MAGIC ||
			(fs.f_type == CGROUP_SUPER_MAGIC && strstr(target, box.id) != NULL));
}

static void
test_agent_holds_only_what_it_was_given(void **state)
{
	char path[300], target[512];
	struct dirent *entry;
	AUTO_DIR *list;
	AUTO_FILE *file;

	(void)state;
	snprintf(path, sizeof path, "/proc/%lld/environ", (long long)box.made.pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fgetc(file), EOF);
	snprintf(path, sizeof path, "/proc/%lld/fd", (long long)box.made.pid);
	list = opendir(path);
	assert_non_null(list);
	while ((entry = readdir(list)) != NULL) {
		ssize_t n;

		snprintf(path, sizeof path, "/proc/%lld/fd/%s", (long long)box.made.pid, entry->d_name);
		n = readlink(path, target, sizeof target - 1);
		if (n < 0)
			continue;
		target[n] = '\0';
		/* beside its own sockets, pipes and events: its view of /proc, its own score, its groups, its spool; the
		   directories among them so that nobody climbs out */
		if (target[0] == '/' && !is_cut_loose(path) && strcmp(target, "/dev/null") != 0 &&
			strcmp(target, "/proc") != 0 && strcmp(target, "/proc/1/oom_score_adj") != 0 &&
			strncmp(target, "/memfd:", 7) != 0 && !is_own_file(path, target))
			fail_msg("the agent holds %s as %s", target, entry->d_name);
	}
}

static void
test_commands_hold_nothing_and_inherit_nothing(void **state)
{
	(void)state;
	expect("ls /proc/self/fd | wc -l", "4\n"); /* 0, 1, 2 and the directory itself */
	expect("busybox env | grep -c SPAWNER_TEST_SECRET", "0\n");
	expect("busybox awk '/^SigBlk:/ {print $2}' /proc/self/status", "0000000000000000\n");
	expect("cat /proc/self/oom_score_adj", "0\n");
	expect("busybox awk '/core file/ {print $5, $6}' /proc/self/limits", "1 1\n");
	expect("busybox yes | head -n 1; echo $?", "y\n0\n");
}

static void
test_nothing_of_the_host_shows(void **state)
{
	char command[256];

	(void)state;
	snprintf(command, sizeof command, "grep -c %s /proc/self/mountinfo /proc/1/mountinfo", bed.dir);
	expect(command, "/proc/self/mountinfo:0\n/proc/1/mountinfo:0\n");
	expect("ls /proc | grep -c '^[0-9]' | busybox awk '{print ($1 < 8)}'", "1\n");
	expect("for f in root cwd exe; do ls /proc/1/$f/ >/dev/null 2>&1 && echo $f; done; echo end", "end\n");
	expect("cat /proc/1/environ /proc/1/mem /proc/1/maps 2>/dev/null | wc -c", "0\n");
	expect("cat /proc/self/cgroup | grep -v ':/jobs/' | grep -vc ':/$' | busybox tr -d '\\n'; cat "
	       "/proc/self/cgroup | grep -c "
	       "orchard",
		"00\n");
	expect("hostname", (snprintf(command, sizeof command, "%s\n", box.id), command));
	expect("ip -o link | wc -l", "1\n");
}

static void
test_kernel_files_are_masked(void **state)
{
	(void)state;
	expect("for f in kcore keys key-users timer_list sched_debug kmsg kallsyms interrupts latency_stats; do "
	       "test -e /proc/$f && test \"$(head -c 1 /proc/$f 2>/dev/null | wc -c)\" != 0 && echo $f; done; echo "
	       "end",
		"end\n");
	expect("for d in /proc/acpi /proc/scsi /proc/asound /sys/firmware /sys/devices/virtual/powercap; do "
	       "test -d $d && ls -A $d; done; echo end",
		"end\n");
}

static void
test_kernel_settings_cannot_be_written(void **state)
{
	(void)state;
	expect("for f in /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sysrq-trigger "
	       "/sys/kernel/profiling /sys/class/net/lo/mtu /proc/irq/default_smp_affinity; do "
	       "test -e $f && (echo 1 > $f) 2>/dev/null && echo $f; done; echo end",
		"end\n");
	expect("for d in /proc /sys /dev /dev/mqueue; do touch $d/x 2>/dev/null && echo $d; done; echo end",
		"end\n");
	expect("mount -t tmpfs none /tmp 2>/dev/null || echo no", "no\n");
	expect("umount /proc/sys 2>/dev/null || echo no", "no\n");
	expect("unshare -U true 2>/dev/null || echo no", "no\n");
	expect("mknod /root/disk b 8 0 2>/dev/null && cat /root/disk 2>/dev/null || echo no", "no\n");
	expect("hostname other 2>/dev/null || echo no", "no\n");
}

/* The limits bind the agent too, which has clone3; its commands have a filter more than it. */
static void
test_nobody_can_make_namespaces(void **state)
{
	(void)state;
	expect("cd /proc/sys/user && cat max_user_namespaces max_net_namespaces max_mnt_namespaces", "0\n0\n0\n");
	expect("(echo 9 > /proc/sys/user/max_user_namespaces) 2>/dev/null || echo refused", "refused\n");
	expect("grep filters: /proc/1/status; grep filters: /proc/self/status",
		"Seccomp_filters:\t1\nSeccomp_filters:\t2\n");
}

static void
test_image_is_never_changed(void **state)
{
	char command[256];

	(void)state;
	expect("echo changed > /etc/motd; rm /bin/wc; mkdir /bin/new; cat /etc/motd", "changed\n");
	snprintf(command, sizeof command,
		"cd %s/image && test \"$(cat etc/motd)\" = untouched && test -L bin/wc && test ! -e bin/new",
		bed.dir);
	assert_int_equal(system(command), 0);
	expect("busybox ln -s busybox /bin/wc", "");
}

static void
test_terminals_work_for_everybody(void **state)
{
	(void)state;
	expect("stat -c %a /dev/pts/ptmx /dev/null /dev/shm", "666\n666\n1777\n");
	expect("busybox su user -c 'id -u; echo x > /dev/null && exec 3<>/dev/ptmx "
	       "&& ls /dev/pts'",
		"1000\n0\nptmx\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rights_are_those_of_a_container),
		cmocka_unit_test(test_agent_holds_only_what_it_was_given),
		cmocka_unit_test(test_commands_hold_nothing_and_inherit_nothing),
		cmocka_unit_test(test_nothing_of_the_host_shows),
		cmocka_unit_test(test_kernel_files_are_masked),
		cmocka_unit_test(test_kernel_settings_cannot_be_written),
		cmocka_unit_test(test_nobody_can_make_namespaces),
		cmocka_unit_test(test_image_is_never_changed),
		cmocka_unit_test(test_terminals_work_for_everybody),
	};

	bed_require_root();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
