/* test_life.c - orders that meet each other, helpers and agents that die, peers that send rubbish. */
/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include "base/clock.h"
#include "base/err.h"
#include "spawner/make/enter.h"
#include "spawner/site.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

enum { MANY = 50, HELPERS_MAX = 64, HELPER_KILLS = 24, RUBBISH_MS = 1000, LISTED = 1000 };

static int
set_up(void **state)
{
	static struct bed bed;

	bed_open(&bed);
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

static uint64_t
send_destroy(struct bed *bed, const struct bed_box *box)
{
	struct spawn_target target = { .head = { SPAWN_VERSION, SPAWN_DESTROY, ++bed->seq } };

	strcpy(target.id, box->id);
	strcpy(target.uid, box->uid);
	bed_send(bed->fd, &target, sizeof target);
	return target.head.seq;
}

/* Receives the answers to two requests, in whatever order they come. */
static void
receive_both(struct bed *bed, uint64_t first, uint64_t second, struct spawn_reply *a, struct spawn_reply *b)
{
	struct spawn_reply reply;

	memset(a, 0, sizeof *a);
	memset(b, 0, sizeof *b);
	while (a->head.seq == 0 || b->head.seq == 0) {
		assert_int_equal(recv(bed->fd, &reply, sizeof reply, 0), sizeof reply);
		if (reply.head.op == SPAWN_PROGRESS)
			continue;
		if (reply.head.seq == first)
			*a = reply;
		else if (reply.head.seq == second)
			*b = reply;
	}
}

static void
test_two_equal_creates_are_one(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create;
	struct spawn_reply a, b;
	struct bed_box box;
	uint64_t first;

	bed_fill_create(bed, &create, &box);
	first = create.head.seq;
	bed_send(bed->fd, &create, sizeof create);
	create.head.seq = ++bed->seq;
	bed_send(bed->fd, &create, sizeof create);
	receive_both(bed, first, create.head.seq, &a, &b);
	assert_int_equal(a.code, ERR_NONE);
	assert_int_equal(b.code, ERR_NONE);
	assert_int_equal(a.pid, b.pid);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	bed_assert_gone(bed, &box, (pid_t)a.pid);
}

static void
test_same_id_with_another_uid_is_refused(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create;
	struct spawn_reply reply;
	struct bed_box box, other;

	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	bed_fill_create(bed, &create, &other);
	strcpy(create.id, box.id);
	assert_int_equal(bed_create(bed, &create, &reply), ERR_EXISTS);
	assert_string_equal(reply.other_uid, box.uid);
	bed_expect(&box, "echo alive", "alive\n");
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

static void
test_destroy_of_an_unknown_one_succeeds(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create;
	struct bed_box box, other;

	bed_fill_create(bed, &create, &box);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	/* the uid counts, not the id: an old request must not hit a new sandbox of that name */
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	other = box;
	id_uuid4(other.uid);
	assert_int_equal(bed_destroy(bed, &other), ERR_NONE);
	bed_expect(&box, "echo alive", "alive\n");
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

static void
test_destroy_overtakes_a_create(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create;
	struct spawn_reply made, gone;
	struct bed_box box;
	uint64_t seq;

	for (int i = 0; i < 10; i++) {
		bed_fill_create(bed, &create, &box);
		assert_int_equal(
			kill(bed->spawner, SIGSTOP), 0); /* it finds both, however long we are held up between */
		bed_send(bed->fd, &create, sizeof create);
		seq = send_destroy(bed, &box);
		assert_int_equal(kill(bed->spawner, SIGCONT), 0);
		receive_both(bed, create.head.seq, seq, &made, &gone);
		assert_int_equal(made.code, ERR_DELETED);
		assert_int_equal(gone.code, ERR_NONE);
		bed_assert_gone(bed, &box, 0);
	}
}

static void
test_create_during_the_destroy_is_told_so(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create;
	struct spawn_reply first, gone, again;
	struct bed_box box;
	uint64_t seq;

	bed_fill_create(bed, &create, &box);
	assert_int_equal(bed_create(bed, &create, &first), ERR_NONE);
	seq = send_destroy(bed, &box);
	create.head.seq = ++bed->seq;
	bed_send(bed->fd, &create, sizeof create);
	receive_both(bed, seq, create.head.seq, &gone, &again);
	assert_int_equal(gone.code, ERR_NONE);
	assert_int_equal(again.code, ERR_DELETED);
	bed_assert_gone(bed, &box, (pid_t)first.pid);
	create.head.seq = ++bed->seq;
	id_uuid4(create.uid);
	strcpy(box.uid, create.uid);
	assert_int_equal(bed_create(bed, &create, NULL), ERR_NONE);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

/* As when a process that has died had asked for it, and its successor for the end of it. */
static void
test_create_that_comes_after_the_destroy_makes_nothing(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create, next;
	struct spawn_reply reply;
	struct spawn_item item;
	struct bed_box box, next_box;

	bed_fill_create(bed, &create, &box);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	assert_int_equal(bed_create(bed, &create, &reply), ERR_DELETED);
	assert_false(bed_find(bed, box.uid, &item));
	bed_stop_spawner(bed, SIGKILL);
	bed_start_spawner(bed); /* reads what was on its way to the one before */
	create.head.seq = ++bed->seq;
	assert_int_equal(bed_create(bed, &create, &reply), ERR_DELETED);
	assert_false(bed_find(bed, box.uid, &item));
	bed_assert_gone(bed, &box, 0);
	/* the id is free for another life */
	bed_fill_create(bed, &next, &next_box);
	strcpy(next.id, box.id);
	strcpy(next_box.id, box.id);
	assert_int_equal(bed_create(bed, &next, NULL), ERR_NONE);
	create.head.seq = ++bed->seq;
	assert_int_equal(bed_create(bed, &create, NULL), ERR_DELETED);
	assert_int_equal(bed_destroy(bed, &next_box), ERR_NONE);
}

/* First host id of a process's user namespace. */
static unsigned long
first_id(int64_t pid)
{
	char path[64];
	unsigned long inside = 1, outside = 0;
	AUTO_FILE *file;

	snprintf(path, sizeof path, "/proc/%lld/uid_map", (long long)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &inside, &outside), 2);
	assert_int_equal(inside, 0);
	return outside;
}

static void
test_fifty_at_once_have_their_own_ids(void **state)
{
	struct bed *bed = *state;
	static struct bed_box box[MANY];
	unsigned long ids[MANY];
	struct spawn_create create;

	for (int i = 0; i < MANY; i++) {
		bed_fill_create(bed, &create, &box[i]);
		box[i].made.head.seq = create.head.seq;
		bed_send(bed->fd, &create, sizeof create);
	}
	for (int i = 0; i < MANY; i++) {
		struct spawn_reply reply;

		do
			assert_int_equal(recv(bed->fd, &reply, sizeof reply, 0), sizeof reply);
		while (reply.head.op == SPAWN_PROGRESS); /* its place in line */
		assert_int_equal(reply.code, ERR_NONE);
		for (int j = 0; j < MANY; j++) {
			if (box[j].made.head.seq == reply.head.seq)
				box[j].made = reply;
		}
	}
	for (int i = 0; i < MANY; i++) {
		ids[i] = first_id(box[i].made.pid);
		for (int j = 0; j < i; j++)
			assert_true(ids[i] >= ids[j] + 65536 || ids[j] >= ids[i] + 65536);
	}
	for (int i = 0; i < MANY; i++)
		(void)send_destroy(bed, &box[i]);
	for (int i = 0; i < MANY; i++) {
		struct spawn_reply reply;

		assert_int_equal(recv(bed->fd, &reply, sizeof reply, 0), sizeof reply);
		assert_int_equal(reply.code, ERR_NONE);
	}
	for (int i = 0; i < MANY; i++)
		bed_assert_gone(bed, &box[i], (pid_t)box[i].made.pid);
}

/* The spawner's children with its own program: its helpers. */
static int
find_helpers(const struct bed *bed, pid_t helpers[HELPERS_MAX])
{
	char path[64], own[256] = "", exe[256];
	AUTO_FILE *file;
	int count = 0, pid;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)bed->spawner, (int)bed->spawner);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(readlink("/proc/self/exe", own, sizeof own - 1) > 0);
	while (fscanf(file, "%d", &pid) == 1 && count < HELPERS_MAX) {
		memset(exe, 0, sizeof exe);
		snprintf(path, sizeof path, "/proc/%d/exe", pid);
		if (readlink(path, exe, sizeof exe - 1) > 0 && strcmp(exe, own) == 0)
			helpers[count++] = pid;
	}
	return count;
}

/* Killed ones are replaced in a while. */
static int
await_helpers(const struct bed *bed, pid_t helpers[HELPERS_MAX])
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	int count = 0;

	for (int i = 0; i < 3000 && (count = find_helpers(bed, helpers)) < 2; i++)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	return count;
}

static void
test_killed_helpers_order_is_answered_and_taken_back(void **state)
{
	struct bed *bed = *state;
	pid_t helpers[HELPERS_MAX];
	struct spawn_create create;
	struct spawn_reply reply;
	struct bed_box box;
	int lost = 0;

	for (int i = 0; i < HELPER_KILLS; i++) {
		struct timespec moment = { .tv_nsec = i * 300000L }; /* each time another step is cut */
		int count = await_helpers(bed, helpers);

		assert_true(count >= 2);
		bed_fill_create(bed, &create, &box);
		bed_send(bed->fd, &create, sizeof create);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
		for (int j = 0; j < count; j++)
			kill(helpers[j], SIGKILL);
		bed_receive(bed->fd, SPAWN_DONE, create.head.seq, &reply, sizeof reply);
		if (reply.code != ERR_NONE) {
			assert_int_equal(reply.code, ERR_UNAVAILABLE);
			lost++;
			/* asked again, as its message says: waits for the end of the clearing up */
			if (i % 2 == 0) {
				create.head.seq = ++bed->seq;
				assert_int_equal(bed_create(bed, &create, &reply), ERR_NONE);
			}
		}
		assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
		bed_assert_gone(bed, &box, (pid_t)reply.pid);
	}
	assert_true(lost > 0);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

static void
test_a_create_that_waits_leaves_the_line_at_once(void **state)
{
	struct bed *bed = *state;
	pid_t helpers[HELPERS_MAX];
	static struct bed_box boxes[HELPERS_MAX + 1];
	int count = find_helpers(bed, helpers);
	struct spawn_create create;
	struct spawn_reply made, gone;

	for (int i = 0; i < count; i++)
		kill(helpers[i], SIGSTOP);
	for (int i = 0; i <= count; i++) {
		bed_fill_create(bed, &create, &boxes[i]);
		bed_send(bed->fd, &create, sizeof create);
	}
	receive_both(bed, create.head.seq, send_destroy(bed, &boxes[count]), &made, &gone);
	assert_int_equal(made.code, ERR_DELETED);
	assert_int_equal(gone.code, ERR_NONE);
	bed_assert_gone(bed, &boxes[count], 0);
	for (int i = 0; i < count; i++)
		kill(helpers[i], SIGCONT);
	for (int i = 0; i < count; i++)
		assert_int_equal(bed_destroy(bed, &boxes[i]), ERR_NONE);
}

static void
watch(struct bed *bed)
{
	struct spawn_header head = { SPAWN_VERSION, SPAWN_WATCH, 0 };

	bed_send(bed->fd, &head, sizeof head);
}

static void
test_end_of_an_agent_is_told_with_its_status(void **state)
{
	struct bed *bed = *state;
	struct spawn_item item;
	struct spawn_create create;
	struct bed_box box;

	watch(bed);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	kill((pid_t)box.made.pid, SIGKILL);
	bed_receive(bed->fd, SPAWN_GONE, 0, &item, sizeof item);
	assert_string_equal(item.uid, box.uid);
	assert_true(WIFSIGNALED(item.wait_status) && WTERMSIG(item.wait_status) == SIGKILL);
	assert_false(item.oom_killed);
	assert_true(bed_find(bed, box.uid, &item));
	assert_false(item.alive);
	/* what has ended is not made again behind its owner's back */
	bed_fill_create(bed, &create, &(struct bed_box){ 0 });
	strcpy(create.id, box.id);
	strcpy(create.uid, box.uid);
	assert_int_equal(bed_create(bed, &create, NULL), ERR_CONFLICT);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	bed_assert_gone(bed, &box, (pid_t)box.made.pid);
}

static void
test_memory_limit_shows_in_the_end(void **state)
{
	struct bed *bed = *state;
	struct spawn_item item;
	struct bed_box box;
	char out[512];

	watch(bed);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	/* files in shared memory count too, and take half of it at most */
	assert_int_not_equal(bed_exec(&box, "dd if=/dev/zero of=/dev/shm/x bs=1M count=64", out, sizeof out), 0);
	bed_expect(&box, "echo alive", "alive\n");
	assert_int_not_equal(bed_exec(&box, "dd if=/dev/zero of=/dev/null bs=60M count=1", out, sizeof out), 0);
	bed_expect(&box, "echo alive", "alive\n");
	kill((pid_t)box.made.pid, SIGKILL);
	bed_receive(bed->fd, SPAWN_GONE, 0, &item, sizeof item);
	assert_true(item.oom_killed);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

static void
test_fork_bomb_goes_with_its_sandbox(void **state)
{
	struct bed *bed = *state;
	struct bed_box box;
	char out[512];

	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	(void)bed_exec(&box, "(f() { f | f & }; f) >/dev/null 2>&1 &", out, sizeof out);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	bed_assert_gone(bed, &box, (pid_t)box.made.pid);
}

/* --- rubbish --- */

static void
assert_refused(struct bed *bed, const void *data, size_t len)
{
	AUTO_FD fd = bed_connect(bed);
	char byte;

	bed_send(fd, data, len);
	assert_true(recv(fd, &byte, 1, 0) <= 0);
}

static void
test_usage_is_of_that_life_alone(void **state)
{
	struct bed *bed = *state;
	struct spawn_target target = { .head = { SPAWN_VERSION, SPAWN_STAT, ++bed->seq } };
	struct spawn_usage usage;
	struct spawn_reply reply;
	struct bed_box box;

	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	strcpy(target.id, box.id);
	strcpy(target.uid, box.uid);
	bed_send(bed->fd, &target, sizeof target);
	bed_receive(bed->fd, SPAWN_USAGE, target.head.seq, &usage, sizeof usage);
	assert_true(usage.pids >= 1 && usage.memory_bytes > 0);
	target.head.seq = ++bed->seq;
	id_uuid4(target.uid);
	bed_send(bed->fd, &target, sizeof target);
	bed_receive(bed->fd, SPAWN_DONE, target.head.seq, &reply, sizeof reply);
	assert_int_equal(reply.code, ERR_NOT_FOUND);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

static void
test_malformed_packets_end_their_connection(void **state)
{
	struct bed *bed = *state;
	static char packet[sizeof(struct spawn_create) + SPAWN_ENV_MAX + 1];
	struct spawn_create create, bad;
	struct spawn_target target = { .head = { SPAWN_VERSION, SPAWN_DESTROY, 1 } };
	struct spawn_header head = { SPAWN_VERSION + 1, SPAWN_LIST, 1 };
	struct bed_box box;

	assert_refused(bed, &head, sizeof head);
	assert_refused(bed, &head, 1);
	head = (struct spawn_header){ SPAWN_VERSION, 99, 1 };
	assert_refused(bed, &head, sizeof head);
	memset(target.id, 'a', sizeof target.id);
	assert_refused(bed, &target, sizeof target);
	assert_refused(bed, &target, sizeof target - 1);
	target.head.op = SPAWN_STAT;
	assert_refused(bed, &target, sizeof target);
	assert_refused(bed, &target, sizeof target - 1);
	bed_fill_create(bed, &create, &box);
	assert_refused(bed, &create, sizeof create - 1);
	bad = create;
	bad.env_len = UINT32_MAX;
	assert_refused(bed, &bad, sizeof bad);
	bad.env_len = 1;
	assert_refused(bed, &bad, sizeof bad);
	bad = create;
	memset(bad.image, 'x', sizeof bad.image);
	assert_refused(bed, &bad, sizeof bad);
	bad = create;
	memset(&bad.block_network, 7, 1);
	assert_refused(bed, &bad, sizeof bad);
	memcpy(packet, &create, sizeof create);
	assert_refused(bed, packet, sizeof packet);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
}

static void
test_senseless_requests_are_answered(void **state)
{
	struct bed *bed = *state;
	struct spawn_create create;
	struct bed_box box;

	bed_fill_create(bed, &create, &box);
	strcpy(create.id, "../../etc");
	assert_int_equal(bed_create(bed, &create, NULL), ERR_INVALID);
	bed_fill_create(bed, &create, &box);
	strcpy(create.uid, "../../etc");
	assert_int_equal(bed_create(bed, &create, NULL), ERR_INVALID);
	bed_fill_create(bed, &create, &box);
	create.memory_bytes = -1;
	assert_int_equal(bed_create(bed, &create, NULL), ERR_INVALID);
	bed_fill_create(bed, &create, &box);
	create.cpu_milli = 0;
	assert_int_equal(bed_create(bed, &create, NULL), ERR_INVALID);
	bed_fill_create(bed, &create, &box);
	create.pids_max = INT64_MAX;
	assert_int_equal(bed_create(bed, &create, NULL), ERR_INVALID);
	bed_fill_create(bed, &create, &box);
	strcpy(create.working_dir, "relative");
	assert_int_equal(bed_create(bed, &create, NULL), ERR_INVALID);
	bed_fill_create(bed, &create, &box);
	strcpy(create.image, "dir:/nonexistent");
	assert_int_not_equal(bed_create(bed, &create, NULL), ERR_NONE);
	bed_assert_gone(bed, &box, 0);
}

/* A valid head now and then, so that the rubbish gets further than the first check. */
static void
send_rubbish(struct bed *bed, unsigned seed)
{
	static char packet[sizeof(struct spawn_create) + 512];
	AUTO_FD fd = bed_connect(bed);

	for (int i = 0; i < 16; i++) {
		struct spawn_header head = { SPAWN_VERSION, (uint32_t)rand_r(&seed) % 8, 7 };
		size_t len = 1 + (size_t)rand_r(&seed) % sizeof packet;

		if (i % 3 == 0)
			len = sizeof(struct spawn_create);
		for (size_t at = 0; at < len; at++)
			packet[at] = (char)(rand_r(&seed) % 3 == 0 ? 0 : rand_r(&seed));
		if (i % 2 == 0)
			memcpy(packet, &head, sizeof head);
		if (send(fd, packet, len, MSG_NOSIGNAL) < 0)
			return;
	}
}

static void
test_rubbish_stalls_nobody(void **state)
{
	struct bed *bed = *state;
	int64_t until = clock_boot_ms() + RUBBISH_MS;
	struct bed_box box;
	unsigned seed = 1;

	while (clock_boot_ms() < until) {
		send_rubbish(bed, seed++);
		if (seed % 64 == 0) {
			assert_int_equal(bed_make(bed, &box), ERR_NONE);
			assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
		}
	}
	assert_int_equal(waitpid(bed->spawner, NULL, WNOHANG), 0);
}

static void
test_foreign_user_is_turned_away(void **state)
{
	struct bed *bed = *state;
	char path[128];
	int status;
	pid_t pid;

	snprintf(path, sizeof path, "%s/run/spawner.sock", bed->dir);
	assert_int_equal(chmod(path, 0777), 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_un address = { .sun_family = AF_UNIX };
		struct spawn_header list = { SPAWN_VERSION, SPAWN_LIST, 1 };
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		char byte;

		strcpy(address.sun_path, path);
		if (setresuid(65534, 65534, 65534) != 0 ||
			connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
			_exit(2);
		(void)send(fd, &list, sizeof list, MSG_NOSIGNAL);
		_exit(recv(fd, &byte, 1, 0) <= 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Creates that nobody works on, because the helpers are stopped; a reader that comes late. */
static void
test_list_of_a_thousand_loses_nothing(void **state)
{
	struct bed *bed = *state;
	pid_t helpers[HELPERS_MAX];
	struct spawn_header list = { SPAWN_VERSION, SPAWN_LIST, 0 };
	int count = find_helpers(bed, helpers), items = 0;
	struct spawn_create create;
	struct bed_box box;
	AUTO_FD fd = bed_connect(bed);

	for (int i = 0; i < count; i++)
		kill(helpers[i], SIGSTOP);
	for (int i = 0; i < LISTED; i++) {
		bed_fill_create(bed, &create, &box);
		bed_send(bed->fd, &create, sizeof create);
	}
	list.seq = 1;
	while (items < LISTED) { /* the first lists may be older than the last creates */
		items = 0;
		for (int i = 0; i < 20; i++) {
			list.seq++;
			bed_send(fd, &list, sizeof list);
		}
		for (uint64_t done = 0; done != list.seq;) {
			struct spawn_item item;

			assert_true(recv(fd, &item, sizeof item, 0) > 0);
			if (item.head.op == SPAWN_DONE)
				done = item.head.seq;
			else if (item.head.seq == list.seq)
				items++;
		}
	}
	assert_int_equal(items, LISTED);
	bed_stop_spawner(bed, SIGKILL); /* takes its stopped helpers along */
}

/* The new init, which shares the helper's memory, belongs to the helper's parent: to this process. */
static void
test_init_ends_with_a_helper_that_died_before_its_order(void **state)
{
	struct site site = { .agent_fd = STDOUT_FILENO };
	struct cgroup_box cgroup;
	struct enter_child child;
	struct err err;
	pid_t helper;

	(void)state;
	cgroup_box_init(&cgroup);
	helper = fork();
	if (helper == 0)
		_exit(enter_start(&site, &cgroup, &child, &err) != 0);
	alarm(30); /* instead of waiting for ever */
	for (int ended = 0; ended < 2; ended++) {
		int status;
		pid_t pid = wait(&status);

		assert_true(pid > 0);
		assert_int_equal(status, pid == helper ? 0 : 1 << 8);
	}
	alarm(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_ends_with_a_helper_that_died_before_its_order),
		cmocka_unit_test_setup_teardown(test_two_equal_creates_are_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_same_id_with_another_uid_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_destroy_of_an_unknown_one_succeeds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_destroy_overtakes_a_create, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_create_during_the_destroy_is_told_so, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_create_that_comes_after_the_destroy_makes_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fifty_at_once_have_their_own_ids, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_killed_helpers_order_is_answered_and_taken_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_a_create_that_waits_leaves_the_line_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_end_of_an_agent_is_told_with_its_status, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory_limit_shows_in_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_fork_bomb_goes_with_its_sandbox, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_usage_is_of_that_life_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_malformed_packets_end_their_connection, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_senseless_requests_are_answered, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rubbish_stalls_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_foreign_user_is_turned_away, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_list_of_a_thousand_loses_nothing, set_up, tear_down),
	};

	bed_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
