/* test_exec_lock.c - one owner per lane, first come first served, whoever dies wherever. */
/* SPDX-License-Identifier: MIT */
#include "ipc/exec_lock.h"
#include "base/clock.h"
#include "base/err.h"
#include "crash.h"
#include "ipc/notify.h"
#include "ipc/section.h"
#include "ipc/shm.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SANDBOXES = 50, NODES = 1000 };

static struct shm_exec_lock *lock;
static struct shm_notify *shm_notices;
static struct shm_scoreboard *board;
static struct notify *notify;
static struct exec_lock_limits limits;
static struct proc_ref self;

static struct proc_ref
claim(void)
{
	struct proc_ref ref;
	struct err err;

	if (scoreboard_claim(board, PROC_WORKER, &ref, &err) < 0)
		abort();
	return ref;
}

static int
make_lock(void **state)
{
	struct err err;

	(void)state;
	lock = crash_map(exec_lock_section_size(SANDBOXES, NODES));
	exec_lock_section_init(lock, SANDBOXES, NODES);
	shm_notices = crash_map(notify_section_size(SANDBOXES, NODES));
	notify_section_init(shm_notices, SANDBOXES, NODES);
	board = crash_map(scoreboard_section_size());
	limits = (struct exec_lock_limits){ .running = 1000, .per_sandbox = 1000 };
	self = claim();
	return notify_open(shm_notices, &notify, &err);
}

static int
unmap_lock(void **state)
{
	(void)state;
	notify_close(notify);
	crash_unmap(lock, exec_lock_section_size(SANDBOXES, NODES));
	crash_unmap(shm_notices, notify_section_size(SANDBOXES, NODES));
	crash_unmap(board, scoreboard_section_size());
	return 0;
}

/* Takes a place; dies on refusal, for children as well. */
static struct exec_ticket
acquire(struct proc_ref who, uint32_t slot, uint64_t lane, uint64_t cookie, bool *ret_granted)
{
	struct exec_ticket ticket;
	struct err err;

	if (exec_lock_acquire(lock, notify, &limits, who, slot, lane, cookie, &ticket, ret_granted, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	return ticket;
}

static void
release(struct exec_ticket ticket)
{
	exec_lock_release(lock, notify, &limits, ticket);
}

static bool
is_readable(uint32_t proc, int timeout_ms)
{
	struct pollfd p = { .fd = notify_fd(notify, proc), .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

static void
assert_stats(uint32_t used, uint32_t running)
{
	struct exec_lock_stats stats;

	exec_lock_stats(lock, &stats);
	assert_int_equal(stats.nodes_used, used);
	assert_int_equal(stats.running, running);
	assert_int_equal(stats.nodes_total, NODES);
}

/* Nothing leaks: all nodes can be had, and all given back. */
static void
assert_all_free(void)
{
	static struct exec_ticket tickets[NODES];
	struct exec_lock_limits wide = { .running = NODES, .per_sandbox = NODES };
	struct exec_ticket more;
	struct err err;
	bool granted;

	assert_stats(0, 0);
	limits = wide;
	for (uint32_t i = 0; i < NODES; i++) {
		tickets[i] = acquire(self, i % SANDBOXES, i, 0, &granted);
		assert_true(granted);
	}
	assert_int_equal(exec_lock_acquire(lock, notify, &limits, self, 0, 0, 0, &more, &granted, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	assert_stats(NODES, NODES);
	for (uint32_t i = 0; i < NODES; i++)
		release(tickets[i]);
	assert_stats(0, 0);
}

static void
test_lane_is_handed_on_in_order(void **state)
{
	struct exec_grant grants[4];
	struct exec_ticket tickets[4];
	bool granted;

	(void)state;
	for (uint64_t i = 0; i < 4; i++) {
		tickets[i] = acquire(self, 7, 1, 100 + i, &granted);
		assert_int_equal(granted, i == 0);
		assert_int_equal(exec_lock_position(lock, tickets[i]), i);
		assert_true(i == 0 || tickets[i].number > tickets[i - 1].number);
	}
	assert_stats(4, 1);
	assert_int_equal(exec_lock_take(lock, self, grants, 4), 0);
	assert_false(is_readable(self.slot, 0));
	for (uint64_t i = 0; i < 3; i++) {
		release(tickets[i]);
		assert_true(is_readable(self.slot, 0));
		notify_drain(notify, self.slot);
		assert_int_equal(exec_lock_take(lock, self, grants, 4), 1);
		assert_int_equal(grants[0].cookie, 101 + i);
		assert_int_equal(grants[0].ticket.number, tickets[i + 1].number);
		assert_int_equal(exec_lock_take(lock, self, grants, 4), 0);
		assert_int_equal(exec_lock_position(lock, tickets[i + 1]), 0);
		assert_int_equal(exec_lock_position(lock, tickets[i]), UINT32_MAX);
	}
	release(tickets[3]);
	assert_all_free();
}

static void
test_lanes_and_sandboxes_are_apart(void **state)
{
	bool granted;

	(void)state;
	for (uint32_t slot = 0; slot < 10; slot++)
		for (uint64_t lane = 0; lane < 10; lane++) {
			acquire(self, slot, lane, 0, &granted);
			assert_true(granted);
		}
	acquire(self, 3, 3, 0, &granted);
	assert_false(granted);
	assert_stats(101, 100);
}

static void
test_running_limit_is_one_fifo_over_all_lanes(void **state)
{
	struct exec_ticket tickets[6];
	struct exec_grant grant;
	bool granted;

	(void)state;
	limits.running = 2;
	for (uint32_t i = 0; i < 6; i++) {
		tickets[i] = acquire(self, i, 0, i, &granted);
		assert_int_equal(granted, i < 2);
		assert_int_equal(exec_lock_position(lock, tickets[i]), 0);
	}
	for (uint32_t i = 0; i < 4; i++) {
		release(tickets[i]);
		assert_stats(5 - i, 2);
		assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
		assert_int_equal(grant.cookie, i + 2);
	}
	release(tickets[4]);
	release(tickets[5]);
	assert_all_free();
}

static void
test_one_lane_with_many_does_not_starve_another(void **state)
{
	struct exec_ticket first, next;
	struct exec_grant grant;
	bool granted;

	(void)state;
	limits.running = 1;
	first = acquire(self, 0, 0, 1, &granted);
	for (int i = 0; i < 100; i++)
		next = acquire(self, 0, 0, 2, &granted);
	acquire(self, 1, 0, 3, &granted);
	release(first);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 3);
	release(grant.ticket);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 2);
	assert_int_equal(exec_lock_position(lock, next), 99);
}

static void
test_limit_that_grew_grants_more_and_one_that_shrank_fewer(void **state)
{
	struct exec_ticket tickets[6];
	struct exec_grant grants[6];
	bool granted;

	(void)state;
	limits.running = 1;
	for (uint32_t i = 0; i < 6; i++)
		tickets[i] = acquire(self, i, 0, i, &granted);
	limits.running = 4;
	release(tickets[0]);
	assert_int_equal(exec_lock_take(lock, self, grants, 6), 4);
	assert_stats(5, 4);
	limits.running = 2;
	release(tickets[1]);
	release(tickets[2]);
	assert_stats(3, 2);
	assert_int_equal(exec_lock_take(lock, self, grants, 6), 0);
	release(tickets[3]);
	assert_int_equal(exec_lock_take(lock, self, grants, 6), 1);
	assert_int_equal(grants[0].cookie, 5);
}

static void
test_share_of_a_sandbox_is_bounded_and_given_back(void **state)
{
	struct exec_ticket ticket, refused;
	struct err err;
	bool granted;

	(void)state;
	limits.per_sandbox = 3;
	ticket = acquire(self, 0, 0, 0, &granted);
	acquire(self, 0, 0, 0, &granted);
	acquire(self, 0, 1, 0, &granted);
	assert_int_equal(exec_lock_acquire(lock, notify, &limits, self, 0, 2, 0, &refused, &granted, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	assert_non_null(strstr(err.msg, "sandbox_exec_queue_limit"));
	acquire(self, 1, 0, 0, &granted);
	release(ticket);
	acquire(self, 0, 2, 0, &granted);
	assert_stats(4, 4);
}

static void
test_lane_is_idle_while_nobody_has_a_place(void **state)
{
	struct exec_ticket first, second;
	bool granted;

	(void)state;
	assert_true(exec_lock_is_idle(lock, 1, 7));
	first = acquire(self, 1, 7, 0, &granted);
	second = acquire(self, 1, 7, 0, &granted);
	assert_false(exec_lock_is_idle(lock, 1, 7));
	assert_true(exec_lock_is_idle(lock, 1, 8));
	assert_true(exec_lock_is_idle(lock, 2, 7));
	release(first);
	assert_false(exec_lock_is_idle(lock, 1, 7));
	release(second);
	assert_true(exec_lock_is_idle(lock, 1, 7));
}

static void
test_waiting_and_granted_places_can_be_given_back(void **state)
{
	struct exec_ticket a, b, c, d;
	struct exec_grant grant;
	bool granted;

	(void)state;
	a = acquire(self, 0, 0, 1, &granted);
	b = acquire(self, 0, 0, 2, &granted);
	c = acquire(self, 0, 0, 3, &granted);
	d = acquire(self, 0, 0, 4, &granted);
	release(c); /* from the middle */
	assert_int_equal(exec_lock_position(lock, d), 2);
	release(a); /* grants b, which was not taken yet */
	release(b);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 4);
	release(d);
	assert_all_free();
}

static void
test_stale_ticket_has_no_effect(void **state)
{
	struct exec_ticket old, current;
	bool granted;

	(void)state;
	old = acquire(self, 0, 0, 0, &granted);
	release(old);
	current = acquire(self, 0, 0, 0, &granted);
	assert_int_equal(current.node, old.node);
	release(old);
	release((struct exec_ticket){ .node = UINT32_MAX, .number = current.number });
	release((struct exec_ticket){ .node = NODES, .number = 0 });
	assert_stats(1, 1);
	assert_int_equal(exec_lock_position(lock, old), UINT32_MAX);
	assert_int_equal(exec_lock_position(lock, current), 0);
}

static void
test_fences_start_at_the_clock_and_can_be_raised(void **state)
{
	struct exec_ticket ticket;
	uint64_t first;
	bool granted;

	(void)state;
	ticket = acquire(self, 0, 0, 0, &granted);
	first = ticket.number;
	assert_true(first > UINT64_C(1600000000000000));
	exec_lock_raise(lock, first + 1000000);
	assert_int_equal(acquire(self, 1, 0, 0, &granted).number, first + 1000001);
	exec_lock_raise(lock, first);
	exec_lock_raise(lock, UINT64_MAX); /* nobody's fence: must not make ours wrap */
	assert_int_equal(acquire(self, 2, 0, 0, &granted).number, first + 1000002);
}

static void
test_unknown_slots_are_refused(void **state)
{
	struct exec_ticket ticket;
	struct err err;
	bool granted;

	(void)state;
	assert_int_equal(
		exec_lock_acquire(lock, notify, &limits, self, SANDBOXES, 0, 0, &ticket, &granted, &err), -1);
	assert_int_equal(exec_lock_acquire(lock, notify, &limits, (struct proc_ref){ .slot = SHM_PROCESSES }, 0, 0,
				 0, &ticket, &granted, &err),
		-1);
	assert_all_free();
}

/* --- deaths --- */

static void
repair(void)
{
	exec_lock_repair(lock, notify, board, &limits);
}

static void
test_places_of_the_dead_are_passed_on(void **state)
{
	struct proc_ref dead = claim();
	struct exec_grant grant;
	bool granted;

	(void)state;
	limits.running = 1;
	acquire(dead, 0, 0, 1, &granted);
	acquire(self, 0, 0, 2, &granted);
	acquire(dead, 0, 0, 3, &granted);
	acquire(self, 0, 0, 4, &granted);
	acquire(dead, 1, 0, 5, &granted);
	acquire(self, 2, 0, 6, &granted);
	scoreboard_retire(board, dead);
	repair();
	assert_stats(3, 1);
	assert_true(is_readable(self.slot, 0));
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 6); /* it was eligible before the other's head was free */
	release(grant.ticket);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 2);
	release(grant.ticket);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 4);
	release(grant.ticket);
	assert_all_free();
}

static void
test_grant_to_a_dead_process_is_not_taken_by_its_successor(void **state)
{
	struct proc_ref dead = claim(), successor;
	struct exec_ticket ticket;
	struct exec_grant grant;
	bool granted;

	(void)state;
	ticket = acquire(self, 0, 0, 1, &granted);
	acquire(dead, 0, 0, 2, &granted);
	release(ticket);
	scoreboard_retire(board, dead);
	successor = claim();
	assert_int_equal(successor.slot, dead.slot);
	assert_int_equal(exec_lock_take(lock, successor, &grant, 1), 0);
	repair();
	assert_int_equal(exec_lock_take(lock, successor, &grant, 1), 0);
	assert_all_free();
}

/* --- places that outlive their owner --- */

static void
test_kept_place_holds_its_lane_until_it_is_adopted(void **state)
{
	struct proc_ref dead = claim();
	struct exec_ticket kept, mine;
	struct exec_grant grant;
	bool granted, waited;

	(void)state;
	for (int was_granted = 0; was_granted < 2; was_granted++) {
		struct exec_ticket first = acquire(self, 0, 0, 1, &granted);

		if (was_granted)
			release(first);
		kept = acquire(dead, 0, 0, 2, &waited);
		assert_int_equal(waited, was_granted);
		exec_lock_keep(lock, kept);
		mine = acquire(self, 0, 0, 3, &granted);
		assert_false(granted);
		assert_false(exec_lock_adopt(lock, board, self, kept, 4, &granted)); /* its owner lives */
		scoreboard_retire(board, dead);
		repair();
		release(first);
		assert_int_equal(exec_lock_take(lock, self, &grant, 1), 0);
		assert_int_equal(exec_lock_position(lock, mine), 1);
		assert_true(exec_lock_adopt(lock, board, self, kept, 4, &granted));
		assert_true(granted);
		assert_false(exec_lock_adopt(lock, board, self, kept, 5, &granted));
		release(kept);
		assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
		assert_int_equal(grant.cookie, 3);
		release(mine);
		dead = claim();
	}
	assert_all_free();
}

/* It lets another run, but not one of its own lane; and gets its turn again. */
static void
test_parked_place_holds_its_lane_and_lets_others_run(void **state)
{
	struct exec_ticket parked, behind, other;
	struct exec_grant grant;
	bool granted;

	(void)state;
	limits.running = 1;
	parked = acquire(self, 0, 0, 1, &granted);
	assert_true(granted);
	behind = acquire(self, 0, 0, 2, &granted);
	other = acquire(self, 1, 0, 3, &granted);
	assert_false(granted);
	exec_lock_park(lock, notify, &limits, parked);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 3);
	assert_int_equal(exec_lock_position(lock, behind), 1);
	assert_false(exec_lock_is_idle(lock, 0, 0));
	assert_stats(3, 1);
	exec_lock_unpark(lock, notify, &limits, parked);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 0);
	release(other);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 1);
	exec_lock_park(lock, notify, &limits, parked);
	release(parked);
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 2);
	release(behind);
	assert_all_free();
}

/* What it waited for is known to nobody then: its successor has it as if it had just come to the head. */
static void
test_parked_place_of_the_dead_is_eligible(void **state)
{
	struct exec_ticket parked;
	struct exec_grant grant;
	bool granted;

	(void)state;
	for (int repaired = 0; repaired < 2; repaired++) {
		struct proc_ref dead = claim();

		parked = acquire(dead, 0, 0, 1, &granted);
		exec_lock_keep(lock, parked);
		exec_lock_park(lock, notify, &limits, parked);
		scoreboard_retire(board, dead);
		if (repaired)
			repair();
		assert_true(exec_lock_adopt(lock, board, self, parked, 2, &granted));
		if (!repaired)
			repair();
		if (!granted)
			assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
		assert_stats(1, 1);
		release(parked);
	}
	assert_all_free();
}

static void
test_adopted_place_that_waits_is_granted_to_its_new_owner(void **state)
{
	struct proc_ref dead = claim();
	struct exec_ticket first, kept;
	struct exec_grant grant;
	bool granted;

	(void)state;
	first = acquire(self, 0, 0, 1, &granted);
	kept = acquire(dead, 0, 0, 2, &granted);
	exec_lock_keep(lock, kept);
	scoreboard_retire(board, dead);
	repair();
	assert_true(exec_lock_adopt(lock, board, self, kept, 3, &granted));
	assert_false(granted);
	notify_drain(notify, self.slot);
	release(first);
	assert_true(is_readable(self.slot, 0));
	assert_int_equal(exec_lock_take(lock, self, &grant, 1), 1);
	assert_int_equal(grant.cookie, 3);
	assert_int_equal(grant.ticket.number, kept.number);
	release(kept);
	assert_all_free();
}

static void
test_orphans_are_the_places_of_the_dead(void **state)
{
	struct proc_ref dead = claim();
	struct exec_ticket tickets[600], orphan;
	uint32_t at = 0, seen = 0;
	bool granted;

	(void)state;
	for (uint32_t i = 0; i < 600; i++) {
		tickets[i] = acquire(i % 2 ? dead : self, i % SANDBOXES, i, 0, &granted);
		if (i % 4 == 1)
			exec_lock_keep(lock, tickets[i]);
	}
	assert_false(exec_lock_next_orphan(lock, board, &at, &orphan));
	scoreboard_retire(board, dead);
	repair();
	for (at = 0; exec_lock_next_orphan(lock, board, &at, &orphan); seen++)
		release(orphan);
	assert_int_equal(seen, 150);
	for (uint32_t i = 0; i < 600; i += 2)
		release(tickets[i]);
	assert_all_free();
}

static void
test_kept_places_live_through_a_restart_and_others_do_not(void **state)
{
	struct proc_ref dead = claim();
	struct exec_ticket kept, next;
	bool granted;

	(void)state;
	kept = acquire(dead, 0, 0, 1, &granted);
	exec_lock_keep(lock, kept);
	acquire(dead, 1, 0, 2, &granted);
	scoreboard_section_adopt(board); /* self is dead, too */
	exec_lock_section_adopt(lock, SANDBOXES, NODES);
	repair();
	assert_stats(1, 1);
	self = claim();
	next = acquire(self, 0, 0, 3, &granted);
	assert_false(granted);
	assert_true(next.number > kept.number);
	assert_true(exec_lock_adopt(lock, board, self, kept, 4, &granted));
	assert_true(granted);
	release(kept);
	release(next);
	assert_all_free();
}

/* A scene with all kinds of nodes; the child then does one thing and is killed in it. */
struct scene {
	struct proc_ref child;
	struct exec_ticket running, waiting, child_running, child_eligible;
};

static void
set_scene(struct scene *scene)
{
	bool granted;

	memset((void *)lock, 0, exec_lock_section_size(SANDBOXES, NODES));
	exec_lock_section_init(lock, SANDBOXES, NODES);
	limits = (struct exec_lock_limits){ .running = 2, .per_sandbox = 100 };
	scene->child = claim();
	scene->running = acquire(self, 0, 0, 1, &granted);
	scene->child_running = acquire(scene->child, 1, 0, 2, &granted);
	scene->waiting = acquire(self, 0, 0, 3, &granted);
	acquire(self, 1, 0, 4, &granted);
	scene->child_eligible = acquire(scene->child, 2, 0, 5, &granted);
	acquire(self, 2, 0, 6, &granted);
	acquire(scene->child, 0, 0, 7, &granted);
	acquire(self, 3, 0, 8, &granted);
}

static void
child_acquires(void *arg)
{
	const struct scene *scene = arg;
	bool granted;

	acquire(scene->child, 0, 0, 9, &granted);
	acquire(scene->child, 9, 9, 10, &granted);
}

static void
child_releases(void *arg)
{
	release(((const struct scene *)arg)->child_running);
}

static void
child_cancels(void *arg)
{
	release(((const struct scene *)arg)->child_eligible);
}

static void
child_parks(void *arg)
{
	const struct scene *scene = arg;

	exec_lock_park(lock, notify, &limits, scene->child_running);
	exec_lock_unpark(lock, notify, &limits, scene->child_running);
}

/* An acquisition that finds the lock's holder dead: the first death is not repaired yet. */
static void
other_acquires(void *arg)
{
	bool granted;

	(void)arg;
	acquire(self, 4, 0, 11, &granted);
}

/* Runs all that is left to its end, within the limit; every request of ours exactly once. */
static void
run_to_the_end(const struct scene *scene, uint32_t expected)
{
	struct exec_grant grants[16];
	uint32_t seen = 1, cookies = 0, n; /* `running` has been granted at once */

	release(scene->running);
	while ((n = exec_lock_take(lock, self, grants, 2)) > 0)
		for (uint32_t i = 0; i < n; i++) {
			struct exec_lock_stats stats;

			exec_lock_stats(lock, &stats);
			assert_true(stats.running <= 2);
			assert_int_equal(cookies & 1u << grants[i].cookie, 0);
			cookies |= 1u << grants[i].cookie;
			seen++;
			release(grants[i].ticket);
		}
	assert_int_equal(seen, expected);
}

static unsigned
kill_everywhere(crash_f *what, bool again)
{
	struct scene scene;
	unsigned nth = 1;
	bool killed;

	do {
		set_scene(&scene);
		killed = crash_at(nth++, what, &scene);
		if (again)
			other_acquires(NULL);
		scoreboard_retire(board, scene.child);
		repair();
		assert_true(is_readable(self.slot, 0));
		notify_drain(notify, self.slot);
		if (again) {
			struct exec_ticket mine;
			bool granted;

			/* ours from before counts as one more that ends */
			mine = acquire(self, 4, 0, 12, &granted);
			assert_false(granted);
			release(mine);
		}
		run_to_the_end(&scene, again ? 6 : 5);
		assert_all_free();
	} while (killed);
	return nth - 2;
}

static void
test_kill_at_any_point_is_repaired(void **state)
{
	(void)state;
	assert_true(kill_everywhere(child_acquires, false) >= 8);
	assert_true(kill_everywhere(child_releases, false) >= 8);
	assert_true(kill_everywhere(child_cancels, false) >= 6);
	assert_true(kill_everywhere(child_parks, false) >= 4);
}

static void
test_kill_at_any_point_is_survived_before_the_repair(void **state)
{
	(void)state;
	assert_true(kill_everywhere(child_acquires, true) >= 8);
	assert_true(kill_everywhere(child_releases, true) >= 8);
	assert_true(kill_everywhere(child_parks, true) >= 4);
	assert_true(kill_everywhere(child_cancels, true) >= 6);
}

static void
do_repair(void *arg)
{
	(void)arg;
	repair();
}

static void
test_kill_while_repairing_is_repaired(void **state)
{
	unsigned nth = 1;
	struct scene scene;
	bool killed;

	(void)state;
	do {
		set_scene(&scene);
		assert_true(crash_at(4, child_releases, &scene));
		scoreboard_retire(board, scene.child);
		killed = crash_at(nth++, do_repair, NULL);
		repair();
		run_to_the_end(&scene, 5);
		assert_all_free();
	} while (killed);
	assert_true(nth > 10);
}

/* --- processes that compete, and are killed --- */

enum { KEYS = 8, WAITERS = 200, WORKERS = 3 };

struct arena {
	_Atomic uint32_t inside[KEYS]; /* generation-unique owner of each key */
	_Atomic uint64_t last[KEYS]; /* newest ticket that ran */
	_Atomic uint32_t violations, done;
	struct proc_ref refs[WORKERS];
	uint64_t progress;
};

static struct arena *arena;

static void
run_granted(uint32_t me, struct exec_grant grant)
{
	uint32_t key = (uint32_t)grant.cookie, nobody = 0;

	if (!atomic_compare_exchange_strong(&arena->inside[key], &nobody, me + 1))
		arena->violations++;
	if (atomic_exchange(&arena->last[key], grant.ticket.number) > grant.ticket.number)
		arena->violations++;
	atomic_store(&arena->inside[key], 0);
	atomic_fetch_add(&arena->done, 1);
	release(grant.ticket);
}

static uint32_t
take_all(uint32_t me)
{
	struct exec_grant grants[7];
	uint32_t n, sum = 0;

	while ((n = exec_lock_take(lock, arena->refs[me], grants, 7)) > 0) {
		for (uint32_t i = 0; i < n; i++)
			run_granted(me, grants[i]);
		sum += n;
	}
	return sum;
}

/* Queues WAITERS requests behind a key that is held, then runs each as it is granted. */
static void
wait_in_line(void *arg)
{
	uint32_t me = *(uint32_t *)arg, before = 0;
	struct exec_ticket ticket;
	bool granted;

	for (uint32_t i = 0; i < WAITERS; i++) {
		ticket = acquire(arena->refs[me], 0, 0, 0, &granted);
		if (granted)
			run_granted(me, (struct exec_grant){ .ticket = ticket, .cookie = 0 });
	}
	while (atomic_load(&arena->done) < WORKERS * WAITERS) {
		if (!is_readable(arena->refs[me].slot, 10000) && before == atomic_load(&arena->done))
			_exit(1); /* a wake-up was lost */
		before = atomic_load(&arena->done);
		notify_drain(notify, arena->refs[me].slot);
		take_all(me);
	}
	for (uint32_t i = 0; i < WORKERS; i++)
		notify_kick(notify, arena->refs[i].slot);
}

static void
wait_for_nodes(uint32_t expected)
{
	struct exec_lock_stats stats;

	do
		exec_lock_stats(lock, &stats);
	while (stats.nodes_used != expected);
}

static void
hold(void *arg)
{
	bool granted;

	acquire(*(struct proc_ref *)arg, 0, 0, 0, &granted);
	for (;;)
		pause();
}

static void
test_600_waiters_of_a_killed_owner_run_in_order(void **state)
{
	struct proc_ref owner = claim();
	uint32_t numbers[WORKERS];
	pid_t holder, pids[WORKERS];

	(void)state;
	arena = crash_map(sizeof *arena);
	holder = crash_start(hold, &owner);
	wait_for_nodes(1);
	for (uint32_t i = 0; i < WORKERS; i++) {
		numbers[i] = i;
		arena->refs[i] = claim();
		pids[i] = crash_start(wait_in_line, &numbers[i]);
	}
	wait_for_nodes(1 + WORKERS * WAITERS);
	assert_int_equal(arena->done, 0);
	crash_kill_after(holder, 0);
	scoreboard_retire(board, owner);
	repair();
	for (uint32_t i = 0; i < WORKERS; i++)
		assert_true(crash_wait(pids[i]));
	assert_int_equal(arena->done, WORKERS * WAITERS);
	assert_int_equal(arena->violations, 0);
	assert_all_free();
	crash_unmap(arena, sizeof *arena);
}

/* Up to 20 requests in line at a time, some given back while they wait. */
static void
compete(void *arg)
{
	uint32_t me = *(uint32_t *)arg, waiting = 0;
	unsigned seed = arena->refs[me].generation * 3 + me;
	bool granted;

	for (;;) {
		uint32_t key = (uint32_t)rand_r(&seed) % KEYS;
		struct exec_ticket ticket = acquire(arena->refs[me], key / 2, key % 2, key, &granted);

		if (granted)
			run_granted(me, (struct exec_grant){ .ticket = ticket, .cookie = key });
		else if (rand_r(&seed) % 4 == 0)
			release(ticket);
		else
			waiting++;
		for (waiting -= take_all(me); waiting >= 20; waiting -= take_all(me)) {
			(void)is_readable(arena->refs[me].slot, -1);
			notify_drain(notify, arena->refs[me].slot);
		}
	}
}

static void
bury(uint32_t victim)
{
	scoreboard_retire(board, arena->refs[victim]);
	/* It may have died inside: nobody else can get in before the repair. */
	for (uint32_t key = 0; key < KEYS; key++) {
		uint32_t dead = victim + 1;

		atomic_compare_exchange_strong(&arena->inside[key], &dead, 0);
	}
	repair();
}

static void
test_random_kills_leave_one_owner_per_lane_and_no_leak(void **state)
{
	uint32_t numbers[WORKERS];
	pid_t pids[WORKERS];

	(void)state;
	arena = crash_map(sizeof *arena);
	limits.running = 3;
	limits.per_sandbox = 10000;
	for (uint32_t i = 0; i < WORKERS; i++) {
		numbers[i] = i;
		arena->refs[i] = claim();
		pids[i] = crash_start(compete, &numbers[i]);
	}
	for (int round = 0; round < 600; round++) {
		uint32_t victim = crash_random(WORKERS);

		crash_kill_after(pids[victim], 200 + crash_random(1500));
		bury(victim);
		arena->refs[victim] = claim();
		pids[victim] = crash_start(compete, &numbers[victim]);
	}
	for (uint32_t i = 0; i < WORKERS; i++) {
		crash_kill_after(pids[i], 0);
		bury(i);
	}
	assert_true(arena->done > 1000);
	assert_int_equal(arena->violations, 0);
	assert_all_free();
	crash_unmap(arena, sizeof *arena);
}

#define LOCK_TEST(f) cmocka_unit_test_setup_teardown(f, make_lock, unmap_lock)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LOCK_TEST(test_lane_is_handed_on_in_order),
		LOCK_TEST(test_kept_place_holds_its_lane_until_it_is_adopted),
		LOCK_TEST(test_parked_place_holds_its_lane_and_lets_others_run),
		LOCK_TEST(test_parked_place_of_the_dead_is_eligible),
		LOCK_TEST(test_adopted_place_that_waits_is_granted_to_its_new_owner),
		LOCK_TEST(test_orphans_are_the_places_of_the_dead),
		LOCK_TEST(test_kept_places_live_through_a_restart_and_others_do_not),
		LOCK_TEST(test_lanes_and_sandboxes_are_apart),
		LOCK_TEST(test_running_limit_is_one_fifo_over_all_lanes),
		LOCK_TEST(test_one_lane_with_many_does_not_starve_another),
		LOCK_TEST(test_limit_that_grew_grants_more_and_one_that_shrank_fewer),
		LOCK_TEST(test_share_of_a_sandbox_is_bounded_and_given_back),
		LOCK_TEST(test_lane_is_idle_while_nobody_has_a_place),
		LOCK_TEST(test_waiting_and_granted_places_can_be_given_back),
		LOCK_TEST(test_stale_ticket_has_no_effect),
		LOCK_TEST(test_fences_start_at_the_clock_and_can_be_raised),
		LOCK_TEST(test_unknown_slots_are_refused),
		LOCK_TEST(test_places_of_the_dead_are_passed_on),
		LOCK_TEST(test_grant_to_a_dead_process_is_not_taken_by_its_successor),
		LOCK_TEST(test_kill_at_any_point_is_repaired),
		LOCK_TEST(test_kill_at_any_point_is_survived_before_the_repair),
		LOCK_TEST(test_kill_while_repairing_is_repaired),
		LOCK_TEST(test_600_waiters_of_a_killed_owner_run_in_order),
		LOCK_TEST(test_random_kills_leave_one_owner_per_lane_and_no_leak),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
