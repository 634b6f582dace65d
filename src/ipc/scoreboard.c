/*
 * scoreboard.c - process slots and their counters.
 *
 * A slot's generation is odd while a process has it and even while it is free, so
 * claiming and retiring each raise it by one and no ref made of zeros is ever
 * current. Only the master claims and retires; only the process itself adds.
 *
 * Counters stay in the slot and go on growing over all lives of the slot: the sum
 * over all slots is the total of the living and the dead, and nothing is moved
 * when a process dies, so that nothing is counted twice or lost wherever the
 * master dies. `base` is what the counters were when the slot was claimed; a
 * master killed while writing it only blurs what scoreboard_info shows of a
 * process that never came to be. Gauges are set to 0 when the slot is retired.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/scoreboard.h"
#include "base/clock.h"
#include "base/err.h"
#include "ipc/section.h"
#include "ipc/shm.h"

#include <stdalign.h>
#include <stdatomic.h>

struct proc_slot {
	alignas(128) _Atomic uint32_t generation; /* odd: taken */
	_Atomic uint32_t role; /* of the present or the last life */
	_Atomic uint32_t state;
	_Atomic int32_t pid;
	_Atomic uint64_t start_time;
	_Atomic int64_t started_us;
	_Atomic uint64_t restarts;
	_Atomic int64_t base[METRIC_COUNT];
	alignas(128) _Atomic int64_t metrics[METRIC_COUNT];
};

struct shm_scoreboard {
	struct proc_slot slots[SHM_PROCESSES];
};

_Static_assert(sizeof(struct proc_slot) == 1536, "layout changed: raise SHM_VERSION");

static bool
is_gauge(enum metric metric)
{
	return metric == METRIC_CONNECTIONS || metric == METRIC_WAITERS || metric == METRIC_STREAMS ||
		metric == METRIC_FILE_CALLS_OPEN || metric == METRIC_IMAGE_BYTES || metric == METRIC_IMAGE_LAYERS ||
		metric == METRIC_TERMINALS || metric == METRIC_BODY_BYTES || metric == METRIC_REDIS_USED ||
		metric == METRIC_REDIS_UP || metric == METRIC_REDIS_HEARS || metric == METRIC_REPLICA_ELECTED ||
		metric == METRIC_REPLICAS_ALIVE || metric == METRIC_PODS || metric == METRIC_POD_CREATES ||
		metric == METRIC_CREATES_WAITING || metric == METRIC_KUBE_USABLE;
}

size_t
scoreboard_section_size(void)
{
	return sizeof(struct shm_scoreboard);
}

void
scoreboard_section_init(struct shm_scoreboard *board)
{
	(void)board; /* all zero: every slot free */
}

static void
retire_slot(struct proc_slot *slot)
{
	for (int m = 0; m < METRIC_COUNT; m++)
		if (is_gauge((enum metric)m))
			atomic_store_explicit(&slot->metrics[m], 0, memory_order_relaxed);
	atomic_store_explicit(&slot->pid, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->generation, 1, memory_order_release);
}

void
scoreboard_section_adopt(struct shm_scoreboard *board)
{
	for (uint32_t i = 0; i < SHM_PROCESSES; i++) {
		struct proc_slot *slot = &board->slots[i];

		if (atomic_load_explicit(&slot->generation, memory_order_relaxed) & 1)
			retire_slot(slot);
	}
}

static void
start_life(struct proc_slot *slot, enum proc_role role, uint32_t generation)
{
	for (int m = 0; m < METRIC_COUNT; m++)
		atomic_store_explicit(&slot->base[m], atomic_load_explicit(&slot->metrics[m], memory_order_relaxed),
			memory_order_relaxed);
	atomic_store_explicit(&slot->restarts, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->role, (uint32_t)role, memory_order_relaxed);
	atomic_store_explicit(&slot->state, PROC_STARTING, memory_order_relaxed);
	atomic_store_explicit(&slot->pid, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->start_time, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->started_us, clock_wall_us(), memory_order_relaxed);
	atomic_store_explicit(&slot->generation, generation + 1, memory_order_release);
}

int
scoreboard_claim(struct shm_scoreboard *board, enum proc_role role, struct proc_ref *ret_ref, struct err *err)
{
	for (uint32_t i = 0; i < SHM_PROCESSES; i++) {
		struct proc_slot *slot = &board->slots[i];
		uint32_t generation = atomic_load_explicit(&slot->generation, memory_order_relaxed);

		if (generation & 1)
			continue;
		start_life(slot, role, generation);
		*ret_ref = (struct proc_ref){ .slot = i, .generation = generation + 1 };
		return 0;
	}
	return err_set(err, ERR_NO_CAPACITY,
		"all %d process slots are taken: wait until old processes have drained", SHM_PROCESSES);
}

static struct proc_slot *
current_slot(struct shm_scoreboard *board, struct proc_ref ref)
{
	return scoreboard_is_current(board, ref) ? &board->slots[ref.slot] : NULL;
}

void
scoreboard_set_pid(struct shm_scoreboard *board, struct proc_ref ref, pid_t pid, uint64_t start_time)
{
	struct proc_slot *slot = current_slot(board, ref);

	if (slot == NULL)
		return;
	atomic_store_explicit(&slot->start_time, start_time, memory_order_relaxed);
	atomic_store_explicit(&slot->pid, (int32_t)pid, memory_order_release);
}

void
scoreboard_set_restarts(struct shm_scoreboard *board, struct proc_ref ref, uint64_t restarts)
{
	struct proc_slot *slot = current_slot(board, ref);

	if (slot != NULL)
		atomic_store_explicit(&slot->restarts, restarts, memory_order_relaxed);
}

void
scoreboard_retire(struct shm_scoreboard *board, struct proc_ref ref)
{
	struct proc_slot *slot = current_slot(board, ref);

	if (slot != NULL)
		retire_slot(slot);
}

void
scoreboard_set_state(struct shm_scoreboard *board, struct proc_ref ref, enum proc_state state)
{
	struct proc_slot *slot = current_slot(board, ref);

	if (slot != NULL)
		atomic_store_explicit(&slot->state, (uint32_t)state, memory_order_relaxed);
}

bool
scoreboard_is_current(struct shm_scoreboard *board, struct proc_ref ref)
{
	return ref.slot < SHM_PROCESSES && (ref.generation & 1) &&
		atomic_load_explicit(&board->slots[ref.slot].generation, memory_order_acquire) == ref.generation;
}

/* False when the slot changed hands meanwhile. */
static bool
copy_info(struct proc_slot *slot, uint32_t number, uint32_t generation, struct proc_info *ret_info)
{
	struct proc_info info = {
		.ref = { .slot = number, .generation = generation },
		.pid = atomic_load_explicit(&slot->pid, memory_order_acquire),
		.role = (enum proc_role)atomic_load_explicit(&slot->role, memory_order_relaxed),
		.state = (enum proc_state)atomic_load_explicit(&slot->state, memory_order_relaxed),
		.start_time = atomic_load_explicit(&slot->start_time, memory_order_relaxed),
		.started_at = (double)atomic_load_explicit(&slot->started_us, memory_order_relaxed) / 1e6,
		.restarts = atomic_load_explicit(&slot->restarts, memory_order_relaxed),
	};

	for (int m = 0; m < METRIC_COUNT; m++) {
		info.metrics[m] = atomic_load_explicit(&slot->metrics[m], memory_order_relaxed);
		if (!is_gauge((enum metric)m))
			info.metrics[m] -= atomic_load_explicit(&slot->base[m], memory_order_relaxed);
	}
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&slot->generation, memory_order_relaxed) != generation)
		return false;
	*ret_info = info;
	return true;
}

bool
scoreboard_info(struct shm_scoreboard *board, uint32_t number, struct proc_info *ret_info)
{
	struct proc_slot *slot;
	uint32_t generation;

	if (number >= SHM_PROCESSES)
		return false;
	slot = &board->slots[number];
	do {
		generation = atomic_load_explicit(&slot->generation, memory_order_acquire);
		if (!(generation & 1))
			return false;
	} while (!copy_info(slot, number, generation, ret_info));
	return true;
}

void
scoreboard_add(struct shm_scoreboard *board, struct proc_ref self, enum metric metric, int64_t n)
{
	_Atomic int64_t *counter;

	if (self.slot >= SHM_PROCESSES || (unsigned)metric >= METRIC_COUNT)
		return;
	counter = &board->slots[self.slot].metrics[metric];
	atomic_store_explicit(
		counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

int64_t
scoreboard_sum(struct shm_scoreboard *board, enum metric metric)
{
	int64_t sum = 0;

	if ((unsigned)metric >= METRIC_COUNT)
		return 0;
	for (uint32_t i = 0; i < SHM_PROCESSES; i++)
		sum += atomic_load_explicit(&board->slots[i].metrics[metric], memory_order_relaxed);
	return sum;
}
