/* test_blanks.c - what is made ahead: used, replaced, and gone with whoever holds it. */
/* SPDX-License-Identifier: MIT */
#include "kids.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "spawner/cgroup/cgroup_find.h"

#include <dirent.h>
#include <errno.h>
#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

enum { BLANKS = 3, PATIENCE_MS = 30000, KILLS = 12 };

static int
set_up(void **state)
{
	static struct bed bed;

	bed_open(&bed);
	bed_set(&bed, "SANDBOX_BLANKS", "3");
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

/* The number in a file of its groups, whichever of the two this host has. */
static long long
read_limit(const struct bed *bed, const struct bed_box *box, const char *controller, const char *v1, const char *v2)
{
	char path[1200], state[512], text[64], group[64] = "";
	long long value = -1;
	const char *at;
	AUTO_FILE *record = NULL;
	AUTO_FILE *file = NULL;

	snprintf(path, sizeof path, "%s/state/sandboxes/%s/state.json", bed->dir, box->id);
	record = fopen(path, "re");
	assert_non_null(record);
	assert_non_null(fgets(state, sizeof state, record));
	at = strstr(state, "\"group\":");
	assert_non_null(at); /* it was a blank */
	at += strlen("\"group\":");
	at += strspn(at, " \"");
	snprintf(group, sizeof group, "%.*s", (int)strcspn(at, "\""), at);
	if (kids_find_groups(bed, controller, path, sizeof path)) {
		snprintf(path + strlen(path), sizeof path - strlen(path), "/%s/%s", group, v1);
	} else {
		assert_true(kids_find_groups(bed, NULL, path, sizeof path));
		snprintf(path + strlen(path), sizeof path - strlen(path), "/%s/%s", group, v2);
	}
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof text, file));
	assert_int_equal(sscanf(text, "%lld", &value), 1);
	return value;
}

static void
test_a_sandbox_of_a_blank_is_like_any_other(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create;
	struct bed_box box, other;
	struct spawn_host host;
	struct spawn_header ask = { SPAWN_VERSION, SPAWN_HOST, ++bed->seq };
	pid_t kids[KIDS_MAX];
	char out[256];
	int count;

	kids_await_blanks(bed, BLANKS);
	assert_int_equal(bed_count(bed), 0);
	bed_send(bed->fd, &ask, sizeof ask);
	bed_receive(bed->fd, SPAWN_HOST_INFO, ask.seq, &host, sizeof host);
	assert_int_equal(host.sandboxes, 0);
	count = kids_find(bed, "orchard-blank", kids);
	bed_fill_create(bed, &create, &box);
	create.memory_bytes = 96 << 20;
	create.pids_max = 77;
	create.cpu_milli = 1500;
	assert_int_equal(bed_create(bed, &create, &box.made), ERR_NONE);
	assert_true(kids_has((pid_t)box.made.pid, kids, count));
	assert_int_equal(read_limit(bed, &box, "memory", "memory.limit_in_bytes", "memory.max"), 96 << 20);
	assert_in_range(read_limit(bed, &box, "pids", "pids.max", "pids.max"), 77, 77 + 16);
	assert_int_equal(read_limit(bed, &box, "cpu", "cpu.cfs_quota_us", "cpu.max"), 150000);
	bed_expect(&box, "stat -f -c '%b %S' /dev/shm | { read b s; echo $((b * s)); }", "50331648\n");
	snprintf(out, sizeof out, "%s\n", box.id);
	bed_expect(&box, "hostname", out);
	bed_expect(&box, "cat /proc/1/comm; ls -d /root; mount | grep -c ' / '", "orchard-agent\n/root\n1\n");
	assert_int_equal(bed_make(bed, &other), ERR_NONE);
	bed_expect(&other, "echo alive", "alive\n");
	kids_await_blanks(bed, BLANKS); /* as many as before */
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	assert_int_equal(bed_destroy(bed, &other), ERR_NONE);
	bed_assert_gone(bed, &box, (pid_t)box.made.pid);
	kids_await_groups(bed, BLANKS);
}

static void
test_one_that_has_died_is_not_missed(void **state)
{
	struct bed *bed = *state;
	struct bed_box boxes[BLANKS];
	pid_t kids[KIDS_MAX];
	int count;

	kids_await_blanks(bed, BLANKS);
	count = kids_find(bed, "orchard-blank", kids);
	for (int i = 0; i < count; i++)
		kill(kids[i], SIGKILL);
	kids_await_blanks(bed, 0);
	assert_int_equal(bed_count(bed), 0); /* whoever asks what there is leaves them to their helpers */
	for (int i = 0; i < BLANKS; i++) {
		assert_int_equal(bed_make(bed, &boxes[i]), ERR_NONE);
		bed_expect(&boxes[i], "echo alive", "alive\n");
	}
	for (int i = 0; i < BLANKS; i++)
		assert_int_equal(bed_destroy(bed, &boxes[i]), ERR_NONE);
	kids_await_groups(bed, BLANKS);
	assert_int_equal(bed_count(bed), 0);
}

/* At many moments, of which some are in the middle of one. */
static void
test_helpers_may_die_while_they_make_them(void **state)
{
	struct bed *bed = *state;
	pid_t kids[KIDS_MAX];
	struct bed_box box;

	for (int i = 0; i < KILLS; i++) {
		int count = kids_find(bed, "", kids);

		for (int j = 0; j < count; j++)
			kill(kids[j], SIGKILL);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = i * 700000L }, NULL);
	}
	kids_await_blanks(bed, BLANKS);
	kids_await_groups(bed, BLANKS);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

/* A process that waits to be killed and has exactly that pid; waits until nobody has it. */
static pid_t
start_bystander(pid_t pid)
{
	const struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1
	};
	int64_t until = clock_boot_ms() + PATIENCE_MS;
	long started;

	while ((started = syscall(SYS_clone3, &args, sizeof args)) < 0) {
		assert_int_equal(errno, EEXIST);
		kids_pause(until);
	}
	while (started == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		(void)pause();
	}
	return (pid_t)started;
}

/* One that has died hours ago may have left its pid to somebody else. */
static void
test_no_stranger_dies_of_its_pid(void **state)
{
	struct bed *bed = *state;
	pid_t kids[KIDS_MAX], all[KIDS_MAX], bystander;
	int blanks, count;

	kids_await_blanks(bed, BLANKS);
	blanks = kids_find(bed, "orchard-blank", kids);
	kill(kids[0], SIGKILL);
	bystander = start_bystander(kids[0]);
	assert_int_equal(bystander, kids[0]);
	count = kids_find(bed, "", all);
	for (int i = 0; i < count; i++) {
		if (!kids_has(all[i], kids, blanks))
			kill(all[i], SIGKILL); /* whoever holds them */
	}
	kids_await_blanks(bed, BLANKS);
	kids_await_groups(bed, BLANKS);
	assert_int_equal(waitpid(bystander, NULL, WNOHANG), 0);
	kill(bystander, SIGKILL);
	assert_int_equal(waitpid(bystander, NULL, 0), bystander);
}

/* Of the spawner's helpers. */
static int
count_descriptors(const struct bed *bed)
{
	pid_t kids[KIDS_MAX], blanks[KIDS_MAX];
	int count = kids_find(bed, "", kids), others = kids_find(bed, "orchard-blank", blanks), total = 0;

	for (int i = 0; i < count; i++) {
		char path[64];
		AUTO_DIR *list = NULL;

		if (kids_has(kids[i], blanks, others))
			continue;
		snprintf(path, sizeof path, "/proc/%d/fd", (int)kids[i]);
		list = opendir(path);
		while (list != NULL && readdir(list) != NULL)
			total++;
	}
	return total;
}

/* Whoever counted at first may have met one at work, with a few more. */
static void
await_descriptors(const struct bed *bed, int most)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (count_descriptors(bed) > most)
		kids_pause(until);
}

/* The directory of that id is there already: the first step of the making. */
static void
fail_creates(struct bed *bed, int count)
{
	for (int i = 0; i < count; i++) {
		struct spawn_create create;
		struct bed_box box;
		char path[512];

		bed_fill_create(bed, &create, &box);
		snprintf(path, sizeof path, "%s/state/sandboxes/%s", bed->dir, box.id);
		assert_int_equal(mkdir(path, 0700), 0);
		kids_await_blanks(bed, BLANKS);
		assert_int_equal(bed_create(bed, &create, &box.made), ERR_EXISTS);
	}
	kids_await_blanks(bed, BLANKS);
	kids_await_groups(bed, BLANKS);
}

static void
test_a_create_that_fails_takes_its_blank_along(void **state)
{
	struct bed *bed = *state;
	int descriptors;

	fail_creates(bed, 2 * BLANKS); /* from the third on some have roots, and a descriptor more */
	descriptors = count_descriptors(bed) + BLANKS;
	fail_creates(bed, 2 * BLANKS);
	await_descriptors(bed, descriptors);
}

static void
test_they_go_with_their_spawner(void **state)
{
	static const char count_mounts[] = "wc -l </proc/mounts; mount | grep -c ' / '";
	struct bed *bed = *state;
	struct bed_box box, other;
	char mounts[64];

	kids_await_blanks(bed, BLANKS);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	kids_await_blanks(bed, BLANKS);
	bed_stop_spawner(bed, SIGKILL);
	assert_true(kids_count_groups(bed) == BLANKS + 1);
	bed_set(bed, "SANDBOX_BLANKS", "0");
	bed_start_spawner(bed);
	kids_await_groups(bed, 1); /* of what was one */
	kids_await_blanks(bed, 0);
	bed_expect(&box, "echo alive", "alive\n");
	assert_int_equal(bed_make(bed, &other), ERR_NONE); /* of none, and no mount more or less */
	(void)bed_exec(&box, count_mounts, mounts, sizeof mounts);
	bed_expect(&other, count_mounts, mounts);
	assert_int_equal(bed_destroy(bed, &other), ERR_NONE);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	bed_assert_gone(bed, &box, (pid_t)box.made.pid);
	kids_await_groups(bed, 0);
}

static void
test_a_spawner_that_stops_takes_them_along(void **state)
{
	struct bed *bed = *state;
	char path[1200];

	kids_await_blanks(bed, BLANKS);
	assert_int_equal(kids_count_groups(bed), BLANKS);
	bed_stop_spawner(bed, SIGTERM);
	assert_int_equal(kids_count_groups(bed), 0);
	assert_true(kids_find_groups(bed, NULL, path, sizeof path) ||
		kids_find_groups(bed, "memory", path, sizeof path));
	assert_int_not_equal(access(path, F_OK), 0); /* nor what held them */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_sandbox_of_a_blank_is_like_any_other, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_has_died_is_not_missed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_helpers_may_die_while_they_make_them, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_stranger_dies_of_its_pid, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_create_that_fails_takes_its_blank_along, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_they_go_with_their_spawner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_spawner_that_stops_takes_them_along, set_up, tear_down),
	};

	bed_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
