/*
 * exec_lock.c - the exec lock's operations: each is one short section under one mutex.
 *
 * The node table is the truth (exec_queue.c). A caller that finds the mutex's last
 * holder dead rebuilds all lists, then goes on; it cannot know which processes are
 * dead, so their nodes stay until the master's exec_lock_repair() drops them.
 *
 * Kept places. What was promised a turn keeps it: a kept node of a dead process stays
 * where it stands, may even be granted (to nobody, who does not take it), and holds
 * its lane until somebody adopts it or finds that no job belongs to it any more. A
 * dead process writes no records, so what is an orphan first and has no job then
 * never gets one.
 *
 * Parked places. A head that waits for another server holds its lane, but no place among those that run. Only its owner
 * knows what it waits for: of a dead one it is eligible again, and whoever adopts it waits anew.
 *
 * Waking. A grant is stored under the mutex, the eventfd is written after it: system
 * calls are no business of a shared section. Killed in between, the grant stands in
 * the list of its owner, and exec_lock_repair() kicks every process that has grants
 * it did not take. An owner reads its eventfd first and takes then, so a grant that
 * comes after the taking has its own kick.
 *
 * Fences. Tickets are numbered from one counter that starts at the wall clock's
 * microseconds, so they grow also when shared memory was lost: the clock runs faster
 * than anybody can take tickets. Should it have been set back, the agent says so and
 * exec_lock_raise() skips ahead.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/exec_lock.h"
#include "base/clock.h"
#include "base/err.h"
#include "ipc/crash_point.h"
#include "ipc/exec_queue.h"
#include "ipc/notify.h"
#include "ipc/robust.h"
#include "ipc/section.h"

#include <string.h>

_Static_assert(sizeof(struct lock_node) == 88, "layout changed: raise SHM_VERSION");
_Static_assert(sizeof(struct shm_exec_lock) % 64 == 0, "what follows is aligned");

enum { SORT_ITEM_SIZE = 16, MIN_BUCKETS = 16, SLICE = 256 };

static uint64_t
round_up(uint64_t n)
{
	return (n + 63) / 64 * 64;
}

static uint32_t
bucket_count(uint32_t nodes)
{
	uint32_t n = MIN_BUCKETS;

	while (n < nodes)
		n *= 2;
	return n;
}

/* Fills the constant part of *lock, returns the section's size. */
static uint64_t
lay_out(struct shm_exec_lock *lock, uint32_t sandboxes, uint32_t nodes)
{
	lock->nodes_total = nodes;
	lock->sandboxes_total = sandboxes;
	lock->bucket_mask = bucket_count(nodes) - 1;
	lock->nodes = sizeof *lock;
	lock->buckets = lock->nodes + round_up((uint64_t)nodes * sizeof(struct lock_node));
	lock->shares = lock->buckets + round_up((uint64_t)bucket_count(nodes) * sizeof(uint32_t));
	lock->scratch = lock->shares + round_up((uint64_t)sandboxes * sizeof(uint32_t));
	return lock->scratch + round_up((uint64_t)nodes * SORT_ITEM_SIZE);
}

size_t
exec_lock_section_size(uint32_t sandboxes, uint32_t nodes)
{
	struct shm_exec_lock layout;

	return lay_out(&layout, sandboxes, nodes);
}

void
exec_lock_section_init(struct shm_exec_lock *lock, uint32_t sandboxes, uint32_t nodes)
{
	lay_out(lock, sandboxes, nodes);
	lock->number = (uint64_t)clock_wall_us();
	robust_init(&lock->mutex);
}

/* An earlier server's words are used as indices. */
static bool
is_sane(const struct shm_exec_lock *lock, struct lock_node *node)
{
	return atomic_load_explicit(&node->state, memory_order_relaxed) <= NODE_PARKED &&
		node->sandbox_slot < lock->sandboxes_total && node->owner.slot < SHM_PROCESSES;
}

/* The rebuild makes it eligible, as the head that it is. */
static void
unpark_orphan(struct lock_node *node)
{
	if (atomic_load_explicit(&node->state, memory_order_relaxed) == NODE_PARKED)
		atomic_store_explicit(&node->state, NODE_QUEUED, memory_order_relaxed);
}

void
exec_lock_section_adopt(struct shm_exec_lock *lock, uint32_t sandboxes, uint32_t nodes)
{
	uint64_t now = (uint64_t)clock_wall_us();

	lay_out(lock, sandboxes, nodes);
	robust_init(&lock->mutex);
	if (lock->number < now)
		lock->number = now;
	if (lock->bound > nodes)
		lock->bound = nodes;
	for (uint32_t ref = lock->bound; ref > 0; ref--) {
		struct lock_node *node = exec_queue_node(lock, ref);

		if (!atomic_load_explicit(&node->kept, memory_order_relaxed) || !is_sane(lock, node))
			atomic_store_explicit(&node->state, NODE_FREE, memory_order_relaxed);
		else
			unpark_orphan(node);
	}
	exec_queue_rebuild(lock);
}

static void
enter(struct shm_exec_lock *lock)
{
	if (robust_lock(&lock->mutex)) {
		exec_queue_rebuild(lock);
		robust_consistent(&lock->mutex);
	}
}

static void
leave(struct shm_exec_lock *lock, struct notify *notify, const struct kick_set *kicks)
{
	robust_unlock(&lock->mutex);
	CRASH_POINT();
	for (uint32_t w = 0; w < sizeof kicks->words / sizeof *kicks->words; w++)
		for (uint64_t left = kicks->words[w]; left != 0; left &= left - 1)
			notify_kick(notify, w * 64 + (uint32_t)__builtin_ctzll(left));
}

/* The node that ticket still names, or 0. */
static uint32_t
find_node(struct shm_exec_lock *lock, struct exec_ticket ticket)
{
	struct lock_node *node;

	if (ticket.node >= lock->bound)
		return 0;
	node = exec_queue_node(lock, ticket.node + 1);
	if (atomic_load_explicit(&node->state, memory_order_relaxed) == NODE_FREE || node->number != ticket.number)
		return 0;
	return ticket.node + 1;
}

static int
check_room(
	struct shm_exec_lock *lock, const struct exec_lock_limits *limits, uint32_t sandbox_slot, struct err *err)
{
	if (exec_queue_is_full(lock))
		return err_set(err, ERR_BUSY,
			"%u commands are queued or running (exec_queue_limit): try again later", lock->nodes_total);
	if (*exec_queue_share(lock, sandbox_slot) >= limits->per_sandbox)
		return err_set(err, ERR_BUSY,
			"%u commands are queued or running in this sandbox (sandbox_exec_queue_limit): try again "
			"later",
			limits->per_sandbox);
	return 0;
}

int
exec_lock_acquire(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct proc_ref self, uint32_t sandbox_slot, uint64_t lane, uint64_t cookie, struct exec_ticket *ret_ticket,
	bool *ret_granted, struct err *err)
{
	const struct lock_node request = {
		.sandbox_slot = sandbox_slot, .lane = lane, .cookie = cookie, .owner = self
	};
	struct kick_set kicks = { { 0 } };
	struct lock_node *node;
	uint32_t ref;
	int rc;

	if (self.slot >= SHM_PROCESSES || sandbox_slot >= lock->sandboxes_total)
		return err_set(err, ERR_INTERNAL, "exec lock: no process slot %u or sandbox slot %u", self.slot,
			sandbox_slot);
	enter(lock);
	rc = check_room(lock, limits, sandbox_slot, err);
	if (rc == 0) {
		ref = exec_queue_add(lock, &request);
		node = exec_queue_node(lock, ref);
		exec_queue_grant(lock, limits->running, &kicks);
		*ret_ticket = (struct exec_ticket){ .node = ref - 1, .number = node->number };
		*ret_granted = atomic_load_explicit(&node->state, memory_order_relaxed) == NODE_GRANTED;
		if (*ret_granted)
			exec_queue_own(lock, ref);
		if (lock->grants[self.slot].head == 0)
			kicks.words[self.slot / 64] &= ~(UINT64_C(1) << self.slot % 64);
	}
	leave(lock, notify, &kicks);
	return rc;
}

void
exec_lock_release(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct exec_ticket ticket)
{
	struct kick_set kicks = { { 0 } };
	uint32_t ref;

	enter(lock);
	ref = find_node(lock, ticket);
	if (ref != 0)
		exec_queue_remove(lock, ref);
	exec_queue_grant(lock, limits->running, &kicks);
	leave(lock, notify, &kicks);
}

void
exec_lock_park(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct exec_ticket ticket)
{
	struct kick_set kicks = { { 0 } };
	uint32_t ref;

	enter(lock);
	ref = find_node(lock, ticket);
	if (ref != 0)
		exec_queue_park(lock, ref);
	exec_queue_grant(lock, limits->running, &kicks);
	leave(lock, notify, &kicks);
}

void
exec_lock_unpark(struct shm_exec_lock *lock, struct notify *notify, const struct exec_lock_limits *limits,
	struct exec_ticket ticket)
{
	struct kick_set kicks = { { 0 } };
	uint32_t ref;

	enter(lock);
	ref = find_node(lock, ticket);
	if (ref != 0)
		exec_queue_unpark(lock, ref);
	exec_queue_grant(lock, limits->running, &kicks);
	leave(lock, notify, &kicks);
}

uint32_t
exec_lock_take(struct shm_exec_lock *lock, struct proc_ref self, struct exec_grant *ret_grants, uint32_t max)
{
	uint32_t n = 0, ref;

	if (self.slot >= SHM_PROCESSES ||
		atomic_load_explicit(&lock->granted[self.slot], memory_order_acquire) == 0)
		return 0;
	enter(lock);
	while (n < max && (ref = exec_queue_take(lock, self.slot)) != 0) {
		struct lock_node *node = exec_queue_node(lock, ref);

		/* A dead predecessor's: as owned it waits for its repair or adoption all the same. */
		if (node->owner.generation != self.generation)
			continue;
		ret_grants[n++] = (struct exec_grant){
			.ticket = { .node = ref - 1, .number = node->number },
			.cookie = node->cookie,
		};
	}
	robust_unlock(&lock->mutex);
	return n;
}

uint32_t
exec_lock_position(struct shm_exec_lock *lock, struct exec_ticket ticket)
{
	uint32_t position = UINT32_MAX, ref;

	enter(lock);
	for (ref = find_node(lock, ticket); ref != 0; ref = exec_queue_node(lock, ref)->prev)
		position++;
	robust_unlock(&lock->mutex);
	return position;
}

void
exec_lock_name(struct shm_exec_lock *lock, struct exec_ticket ticket, uint32_t job_slot)
{
	/* As with exec_lock_keep(): the caller owns the node. */
	if (ticket.node < lock->nodes_total && exec_queue_node(lock, ticket.node + 1)->number == ticket.number)
		atomic_store_explicit(
			&exec_queue_node(lock, ticket.node + 1)->job, job_slot + 1, memory_order_relaxed);
}

uint32_t
exec_lock_blocker(struct shm_exec_lock *lock, struct exec_ticket ticket)
{
	uint32_t ref, head = 0, job = 0;

	enter(lock);
	for (ref = find_node(lock, ticket); ref != 0; ref = exec_queue_node(lock, ref)->prev)
		head = ref;
	if (head != 0 && head != ticket.node + 1)
		job = atomic_load_explicit(&exec_queue_node(lock, head)->job, memory_order_relaxed);
	robust_unlock(&lock->mutex);
	return job - 1;
}

void
exec_lock_keep(struct shm_exec_lock *lock, struct exec_ticket ticket)
{
	/* Only its owner frees a node, and that is the caller: no need of the mutex. */
	if (ticket.node < lock->nodes_total && exec_queue_node(lock, ticket.node + 1)->number == ticket.number)
		atomic_store_explicit(&exec_queue_node(lock, ticket.node + 1)->kept, 1, memory_order_relaxed);
}

bool
exec_lock_adopt(struct shm_exec_lock *lock, struct shm_scoreboard *board, struct proc_ref self,
	struct exec_ticket ticket, uint64_t cookie, bool *ret_granted)
{
	struct lock_node *node;
	uint32_t ref;

	enter(lock);
	ref = find_node(lock, ticket);
	node = ref != 0 ? exec_queue_node(lock, ref) : NULL;
	if (node != NULL && scoreboard_is_current(board, node->owner))
		node = NULL;
	if (node != NULL) {
		exec_queue_adopt(lock, ref, self, cookie);
		atomic_store_explicit(&node->kept, 1, memory_order_relaxed);
		*ret_granted = atomic_load_explicit(&node->state, memory_order_relaxed) == NODE_OWNED;
	}
	robust_unlock(&lock->mutex);
	return node != NULL;
}

bool
exec_lock_next_orphan(
	struct shm_exec_lock *lock, struct shm_scoreboard *board, uint32_t *at, struct exec_ticket *ret_ticket)
{
	bool more = true, found = false;

	while (more && !found) {
		enter(lock);
		for (uint32_t end = *at + SLICE; !found && *at < end && *at < lock->bound; ++*at) {
			struct lock_node *node = exec_queue_node(lock, *at + 1);

			found = atomic_load_explicit(&node->state, memory_order_relaxed) != NODE_FREE &&
				!scoreboard_is_current(board, node->owner);
			*ret_ticket = (struct exec_ticket){ .node = *at, .number = node->number };
		}
		more = *at < lock->bound;
		robust_unlock(&lock->mutex);
	}
	return found;
}

void
exec_lock_repair(struct shm_exec_lock *lock, struct notify *notify, struct shm_scoreboard *board,
	const struct exec_lock_limits *limits)
{
	struct kick_set kicks = { { 0 } }, alive = { { 0 } };
	struct proc_info info;

	for (uint32_t i = 0; i < SHM_PROCESSES; i++)
		if (scoreboard_info(board, i, &info))
			alive.words[i / 64] |= UINT64_C(1) << i % 64;
	enter(lock);
	for (uint32_t ref = lock->bound; ref > 0; ref--) {
		struct lock_node *node = exec_queue_node(lock, ref);

		if (scoreboard_is_current(board, node->owner))
			continue;
		if (!atomic_load_explicit(&node->kept, memory_order_relaxed))
			atomic_store_explicit(&node->state, NODE_FREE, memory_order_relaxed);
		else
			unpark_orphan(node);
	}
	exec_queue_rebuild(lock);
	exec_queue_grant(lock, limits->running, &kicks);
	for (uint32_t i = 0; i < SHM_PROCESSES; i++)
		if (lock->grants[i].head != 0)
			kicks.words[i / 64] |= UINT64_C(1) << i % 64;
	leave(lock, notify, &kicks);
	notify_repair(notify, alive.words);
}

void
exec_lock_raise(struct shm_exec_lock *lock, uint64_t newest)
{
	/* No counter of ours comes near this; what an agent claims must not make ours wrap. */
	if (newest >= UINT64_C(1) << 62)
		return;
	enter(lock);
	if (lock->number < newest)
		lock->number = newest;
	robust_unlock(&lock->mutex);
}

bool
exec_lock_is_idle(struct shm_exec_lock *lock, uint32_t sandbox_slot, uint64_t lane)
{
	bool idle;

	enter(lock);
	idle = exec_queue_head(lock, sandbox_slot, lane) == 0;
	robust_unlock(&lock->mutex);
	return idle;
}

uint32_t
exec_lock_places(struct shm_exec_lock *lock, uint32_t sandbox_slot)
{
	uint32_t places;

	enter(lock);
	places = *exec_queue_share(lock, sandbox_slot);
	robust_unlock(&lock->mutex);
	return places;
}

void
exec_lock_stats(struct shm_exec_lock *lock, struct exec_lock_stats *ret_stats)
{
	enter(lock);
	*ret_stats = (struct exec_lock_stats){
		.nodes_used = lock->used, .nodes_total = lock->nodes_total, .running = lock->running
	};
	robust_unlock(&lock->mutex);
}
