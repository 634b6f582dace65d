/* test_restart.c - spawners that are killed and started again, seen through the local driver; hosts that lack something. */
/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include "backend/driver.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/config.h"
#include "spawner/cgroup/cgroup_find.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#include <cmocka.h>

enum { IN_FLIGHT = 8, ROUNDS = 6, PATIENCE_MS = 20000 };

struct rig {
	struct bed bed;
	struct event_base *base;
	struct driver *driver;
	int open; /* calls that were not answered yet */
	enum err_code last;
	char problem[512];
};

struct order {
	struct rig *rig;
	struct bed_box box;
	int answers;
	enum err_code code;
	char other[ID_UUID_SIZE];
	pid_t pid;
	uint64_t pid_start;
};

static int
set_up(void **state)
{
	static struct rig rig;
	struct err err;

	memset(&rig, 0, sizeof rig);
	bed_open(&rig.bed);
	rig.base = event_base_new();
	if (driver_asker_create(rig.base, rig.bed.config, &rig.driver, &err) != 0)
		fail_msg("%s", err.msg);
	*state = &rig;
	return 0;
}

static int
tear_down(void **state)
{
	struct rig *rig = *state;

	rig->driver->ops->free(rig->driver);
	event_base_free(rig->base);
	bed_close(&rig->bed);
	return 0;
}

static void
run(struct rig *rig)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (rig->open > 0) {
		assert_true(clock_boot_ms() < until);
		assert_true(event_base_loop(rig->base, EVLOOP_ONCE) >= 0);
	}
}

static void
on_created(const struct driver_made *made, const struct err *why, void *arg)
{
	struct order *order = arg;

	order->rig->open--;
	order->answers++;
	order->code = why != NULL ? why->code : ERR_NONE;
	if (why != NULL) {
		fprintf(stderr, "create: %s\n", why->msg);
		if (why->code == ERR_EXISTS)
			snprintf(order->other, sizeof order->other, "%s", made->other_uid);
		else
			assert_null(made);
		return;
	}
	order->pid = made->pid;
	order->pid_start = made->pid_start;
	snprintf(order->box.made.endpoint, sizeof order->box.made.endpoint, "%s", made->endpoint);
}

static void
on_done(const struct err *why, void *arg)
{
	struct rig *rig = arg;

	rig->open--;
	rig->last = why != NULL ? why->code : ERR_NONE;
}

static void
ask_create(struct rig *rig, struct order *order)
{
	struct driver_spec spec = { .id = order->box.id,
		.uid = order->box.uid,
		.token = order->box.token,
		.image = rig->bed.image,
		.working_dir = "",
		.block_network = true,
		.cpu_milli = 1000,
		.memory_bytes = 64 << 20,
		.pids_max = 64 };

	if (order->box.id[0] == '\0')
		id_sandbox(order->box.id);
	id_uuid4(order->box.uid);
	id_token(order->box.token);
	order->rig = rig;
	rig->open++;
	rig->driver->ops->create(rig->driver, &spec, NULL, on_created, order);
}

static void
destroy(struct rig *rig, struct order *order)
{
	rig->open++;
	rig->driver->ops->destroy(rig->driver, order->box.id, order->box.uid, on_done, rig);
	run(rig);
	assert_int_equal(rig->last, ERR_NONE);
	bed_assert_gone(&rig->bed, &order->box, order->pid);
}

static void
test_creates_in_flight_survive_a_killed_spawner(void **state)
{
	struct rig *rig = *state;
	static struct order before, orders[IN_FLIGHT];

	memset(&before, 0, sizeof before);
	bed_start_spawner(&rig->bed);
	ask_create(rig, &before);
	run(rig);
	for (int round = 0; round < ROUNDS; round++) {
		struct timespec moment = { .tv_nsec = round * 3000000L };

		memset(orders, 0, sizeof orders);
		for (int i = 0; i < IN_FLIGHT; i++)
			ask_create(rig, &orders[i]);
		for (int turns = 0; turns < 4; turns++)
			(void)event_base_loop(rig->base, EVLOOP_NONBLOCK);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
		bed_stop_spawner(&rig->bed, SIGKILL);
		bed_start_spawner(&rig->bed);
		run(rig);
		for (int i = 0; i < IN_FLIGHT; i++) {
			assert_int_equal(orders[i].answers, 1);
			assert_int_equal(orders[i].code, ERR_NONE);
			assert_true(proc_is_alive(orders[i].pid, orders[i].pid_start));
			bed_expect(&orders[i].box, "echo here", "here\n");
			destroy(rig, &orders[i]);
		}
	}
	/* the one from before the first kill is the same process, and still works */
	assert_true(proc_is_alive(before.pid, before.pid_start));
	bed_expect(&before.box, "echo here", "here\n");
	destroy(rig, &before);
}

static void
test_life_that_has_the_id_is_named(void **state)
{
	struct rig *rig = *state;
	static struct order first, second;

	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	bed_start_spawner(&rig->bed);
	ask_create(rig, &first);
	run(rig);
	memcpy(second.box.id, first.box.id, sizeof second.box.id);
	ask_create(rig, &second);
	run(rig);
	assert_int_equal(second.code, ERR_EXISTS);
	assert_string_equal(second.other, first.box.uid);
	destroy(rig, &first);
}

struct gone {
	struct rig *rig;
	char uid[ID_UUID_SIZE];
};

static void
on_gone(const struct driver_item *item, void *arg)
{
	struct gone *gone = arg;

	snprintf(gone->uid, sizeof gone->uid, "%s", item->uid);
	gone->rig->open--;
}

static void
ignore_item(const struct driver_item *item, void *arg)
{
	(void)item;
	(void)arg;
}

static void
test_watcher_hears_of_adopted_ones(void **state)
{
	struct rig *rig = *state;
	struct gone gone = { .rig = rig };
	static struct order order;

	memset(&order, 0, sizeof order);
	bed_start_spawner(&rig->bed);
	rig->driver->ops->watch(rig->driver, on_gone, &gone);
	ask_create(rig, &order);
	run(rig);
	bed_stop_spawner(&rig->bed, SIGKILL);
	bed_start_spawner(&rig->bed);
	for (;;) { /* a list that comes through was asked after the watch */
		rig->open++;
		rig->driver->ops->list(rig->driver, ignore_item, on_done, rig);
		run(rig);
		if (rig->last == ERR_NONE)
			break;
	}
	rig->open++;
	kill(order.pid, SIGKILL);
	run(rig);
	assert_string_equal(gone.uid, order.box.uid);
	destroy(rig, &order);
}

static bool
is_empty(const char *dir, const char *sub)
{
	return run_shell("test -z \"$(ls -A %s/%s)\"", dir, sub) == 0;
}

/* Waits for work that nobody is told the end of. */
static void
await_empty(const char *dir, const char *sub)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (!is_empty(dir, sub)) {
		struct timespec pause = { .tv_nsec = 10000000 };

		assert_true(clock_boot_ms() < until);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

static bool
group_path(const struct bed *bed, const char *controller, const char *id, char *buf, size_t size)
{
	char own[512], hex[TEXT_SHA256_HEX_SIZE], state_dir[128];

	if (!cgroup_find_dir(controller, "", own, sizeof own))
		return false;
	snprintf(state_dir, sizeof state_dir, "%s/state", bed->dir);
	text_sha256_hex(state_dir, strlen(state_dir), hex);
	return (size_t)snprintf(buf, size, "%s/orchard-%.12s/%s", own, hex, id) < size;
}

static void
make_group(const struct bed *bed, const char *controller, const char *id)
{
	char path[1200];

	if (group_path(bed, controller, id, path, sizeof path))
		assert_int_equal(run_shell("mkdir -p %s", path), 0);
}

/* Its agent is alone in a group, and commands have their own limit where this kernel has one to give. */
static bool
is_settled(const char *group, pid_t agent)
{
	return run_shell("cd %s && grep -qx %d agent/cgroup.procs && { ! grep -qw pids cgroup.controllers || "
			 "grep -qx 64 jobs/pids.max 2>/dev/null; }",
		       group, (int)agent) == 0;
}

static void
await_settled(const char *group, pid_t agent)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (!is_settled(group, agent)) {
		struct timespec pause = { .tv_nsec = 10000000 };

		assert_true(clock_boot_ms() < until);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

static void
test_adopted_one_is_settled(void **state)
{
	struct rig *rig = *state;
	static struct order order;
	char group[1200];

	memset(&order, 0, sizeof order);
	bed_start_spawner(&rig->bed);
	ask_create(rig, &order);
	run(rig);
	if (!group_path(&rig->bed, NULL, order.box.id, group, sizeof group))
		skip();
	await_settled(group, order.pid);
	for (int round = 0; round < 2; round++) { /* as its maker would have left it; and as it should be */
		bed_stop_spawner(&rig->bed, SIGKILL);
		if (round == 0)
			assert_int_equal(run_shell("cd %s && { ! grep -qw pids cgroup.controllers || "
						   "echo -pids > cgroup.subtree_control; } && "
						   "echo %d > cgroup.procs",
						 group, (int)order.pid),
				0);
		assert_int_equal(is_settled(group, order.pid), round);
		bed_start_spawner(&rig->bed);
		await_settled(group, order.pid);
		bed_expect(&order.box, "echo here", "here\n");
	}
	destroy(rig, &order);
}

static void
test_leftovers_of_other_boots_go_at_start(void **state)
{
	struct rig *rig = *state;
	const char *dir = rig->bed.dir;
	struct bed_box box = { .id = "sb-stale" };

	/* its record names this very process, in another boot: it must not be harmed */
	assert_int_equal(
		run_shell(
			"cd %s && mkdir -m 700 state state/sandboxes state/trash && mkdir run/sandboxes && "
			"mkdir -p state/sandboxes/sb-stale/upper/a/b run/sandboxes/sb-stale "
			"state/sandboxes/sb-broken "
			"state/trash/old/c state/trash/a/b state/trash/d state/trash/e state/trash/f "
			"run/sandboxes/sb-alone && touch run/sandboxes/sb-stale/agent.sock && "
			"chmod 000 state/trash/old/c && echo '{\"id\":' > state/sandboxes/sb-broken/state.json && "
			"printf '{\"id\":\"sb-stale\",\"uid\":\"11111111-1111-4111-8111-111111111111\","
			"\"boot_id\":\"00000000-0000-0000-0000-000000000000\",\"state\":\"live\",\"slot\":0,"
			"\"pid\":%d,\"pid_start\":%llu}' > state/sandboxes/sb-stale/state.json",
			dir, (int)getpid(), (unsigned long long)proc_start_time(getpid())),
		0);
	make_group(&rig->bed, NULL, "sb-stale");
	make_group(&rig->bed, "memory", "sb-stale");
	make_group(&rig->bed, NULL, "sb-grouponly");
	bed_set(&rig->bed, "SANDBOX_BLANKS", "0"); /* nothing but the leftovers is there */
	bed_start_spawner(&rig->bed);
	await_empty(dir, "state/sandboxes");
	await_empty(dir, "run/sandboxes");
	await_empty(dir, "state/trash");
	bed_assert_gone(&rig->bed, &box, 0);
}

static void
test_killed_rehearsal_does_not_spoil_the_next_start(void **state)
{
	struct rig *rig = *state;
	static struct order order;

	memset(&order, 0, sizeof order);
	assert_int_equal(
		run_shell("cd %s && mkdir -p run/sandboxes/-rehearsal state && mkdir -m 700 state/sandboxes && "
			  "mkdir -p state/sandboxes/-rehearsal/upper",
			rig->bed.dir),
		0);
	make_group(&rig->bed, NULL, "-rehearsal");
	bed_start_spawner(&rig->bed);
	ask_create(rig, &order);
	run(rig);
	assert_int_equal(order.code, ERR_NONE);
	destroy(rig, &order);
}

static void
on_host(const struct driver_host *host, const struct err *why, void *arg)
{
	struct rig *rig = arg;

	rig->open--;
	assert_null(why);
	assert_false(host->usable);
	snprintf(rig->problem, sizeof rig->problem, "%s", host->problem);
}

static void
test_missing_agent_is_said_with_the_cure(void **state)
{
	struct rig *rig = *state;
	static struct order order;

	memset(&order, 0, sizeof order);
	bed_set(&rig->bed, "AGENT_PATH", "/nonexistent/agent");
	bed_start_spawner(&rig->bed);
	rig->open++;
	rig->driver->ops->host(rig->driver, on_host, rig);
	run(rig);
	assert_non_null(strstr(rig->problem, "/nonexistent/agent"));
	assert_non_null(strstr(rig->problem, "agent_path"));
	ask_create(rig, &order);
	run(rig);
	assert_int_equal(order.code, ERR_UNSUPPORTED);
	assert_true(is_empty(rig->bed.dir, "state/sandboxes"));
}

static void
test_agent_that_is_no_program_fails_the_create(void **state)
{
	struct rig *rig = *state;
	static struct order order;
	char path[128];

	memset(&order, 0, sizeof order);
	snprintf(path, sizeof path, "%s/agent", rig->bed.dir);
	assert_int_equal(run_shell("echo rubbish > %s", path), 0);
	bed_set(&rig->bed, "AGENT_PATH", path);
	bed_start_spawner(&rig->bed);
	ask_create(rig, &order);
	run(rig);
	assert_int_not_equal(order.code, ERR_NONE);
	bed_assert_gone(&rig->bed, &order.box, 0);
}

static void
test_full_disk_is_no_space_and_leaves_nothing(void **state)
{
	struct rig *rig = *state;
	char path[128];
	static struct order order, later;

	memset(&order, 0, sizeof order);
	memset(&later, 0, sizeof later);
	snprintf(path, sizeof path, "%s/state", rig->bed.dir);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(mount("state", path, "tmpfs", 0, "size=1m,mode=0755"), 0);
	bed_start_spawner(&rig->bed);
	await_empty(rig->bed.dir, "state/trash"); /* what its trial has left would make room later */
	(void)run_shell("cat /dev/zero > %s/filler 2>/dev/null", path);
	ask_create(rig, &order);
	run(rig);
	assert_int_equal(order.code, ERR_NO_SPACE);
	bed_assert_gone(&rig->bed, &order.box, 0);
	await_empty(rig->bed.dir, "state/trash");
	assert_int_equal(run_shell("rm %s/filler", path), 0);
	ask_create(rig, &later);
	run(rig);
	assert_int_equal(later.code, ERR_NONE);
	destroy(rig, &later);
	bed_stop_spawner(&rig->bed, SIGTERM);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_creates_in_flight_survive_a_killed_spawner, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_life_that_has_the_id_is_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_watcher_hears_of_adopted_ones, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_adopted_one_is_settled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leftovers_of_other_boots_go_at_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_killed_rehearsal_does_not_spoil_the_next_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_missing_agent_is_said_with_the_cure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_agent_that_is_no_program_fails_the_create, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_disk_is_no_space_and_leaves_nothing, set_up, tear_down),
	};

	bed_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
