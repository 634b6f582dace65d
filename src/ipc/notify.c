/*
 * notify.c - interest masks, bitmaps of changed slots, eventfds.
 *
 * Per slot: a mask of the processes that want to hear of it (96 bits in two words).
 * Per process and kind: a bit per slot, and a summary bit per word of those.
 *
 * Who writes what. An interest bit belongs to its process: only notify_watch() sets
 * it and only notify_take() and notify_forget() clear it, all called by that process (and,
 * when it is dead, the master before the slot has a new one). A poster reads
 * masks and sets bits; only notify_take() clears bits. So no poster can undo a
 * watch that came after the change it tells of, and a poster killed anywhere
 * leaves the interest standing: the next post, or notify_repair() that the
 * master's repair calls after every death, tells again.
 *
 * No lost wake-up. The poster stores the state, then (fence) reads the mask. The
 * watcher sets its interest, then (fence) reads the state. In the one total order of
 * the two fences one comes first: either the poster sees the interest, or the
 * watcher sees the new state. Taking clears the interest before the bit: a post in
 * between sets the bit once more or finds no interest, and then the fence in
 * notify_take() lets the taker's look at the state, which comes after, see it, or
 * it watches again before it looks.
 *
 * Bits and summary. The poster sets the bit, then its summary bit. The taker clears
 * a summary bit only when the word was 0, and looks at the word again afterwards.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/notify.h"
#include "base/alloc.h"
#include "base/err.h"
#include "ipc/crash_point.h"
#include "ipc/section.h"
#include "ipc/shm.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/eventfd.h>

enum { LINE_WORDS = 8 };

struct notify_kind_area {
	uint32_t slots;
	uint32_t words; /* of bits, per process */
	uint32_t sums; /* summary words, per process; they stand before the bits */
	uint32_t stride; /* words from process to process */
	uint64_t interest; /* where the masks start, in words from the section's start */
	uint64_t bits; /* where process 0's words start */
};

struct shm_notify {
	struct notify_kind_area kinds[NOTIFY_KIND_COUNT];
};

struct notify {
	struct shm_notify *shm;
	int fds[SHM_PROCESSES];
};

static uint32_t
round_up(uint32_t n, uint32_t to)
{
	return (n + to - 1) / to * to;
}

/* Fills areas, returns the section's size in words. */
static uint64_t
lay_out(struct notify_kind_area areas[NOTIFY_KIND_COUNT], uint32_t sandboxes, uint32_t jobs)
{
	uint64_t at = round_up(sizeof(struct shm_notify) / 8 + 1, LINE_WORDS);

	areas[NOTIFY_SANDBOX].slots = sandboxes;
	areas[NOTIFY_JOB].slots = jobs;
	for (int k = 0; k < NOTIFY_KIND_COUNT; k++) {
		struct notify_kind_area *area = &areas[k];

		area->words = (area->slots + 63) / 64;
		area->sums = (area->words + 63) / 64;
		area->stride = round_up(area->sums + area->words, LINE_WORDS);
		area->interest = at;
		at += round_up(area->slots * NOTIFY_PROC_WORDS, LINE_WORDS);
		area->bits = at;
		at += (uint64_t)area->stride * SHM_PROCESSES;
	}
	return at;
}

size_t
notify_section_size(uint32_t sandboxes, uint32_t jobs)
{
	struct notify_kind_area areas[NOTIFY_KIND_COUNT];

	return lay_out(areas, sandboxes, jobs) * 8;
}

void
notify_section_init(struct shm_notify *shm, uint32_t sandboxes, uint32_t jobs)
{
	lay_out(shm->kinds, sandboxes, jobs);
}

void
notify_section_adopt(struct shm_notify *shm, uint32_t sandboxes, uint32_t jobs)
{
	memset(shm, 0, notify_section_size(sandboxes, jobs));
	notify_section_init(shm, sandboxes, jobs);
}

static _Atomic uint64_t *
word_at(struct shm_notify *shm, uint64_t index)
{
	return (_Atomic uint64_t *)shm + index;
}

static _Atomic uint64_t *
interest_at(struct shm_notify *shm, enum notify_kind kind, uint32_t slot)
{
	return word_at(shm, shm->kinds[kind].interest + (uint64_t)slot * NOTIFY_PROC_WORDS);
}

static _Atomic uint64_t *
sums_at(struct shm_notify *shm, enum notify_kind kind, uint32_t proc)
{
	return word_at(shm, shm->kinds[kind].bits + (uint64_t)proc * shm->kinds[kind].stride);
}

int
notify_open(struct shm_notify *shm, struct notify **ret_notify, struct err *err)
{
	struct notify *notify = alloc_zero(1, sizeof *notify);

	notify->shm = shm;
	memset(notify->fds, -1, sizeof notify->fds);
	for (uint32_t i = 0; i < SHM_PROCESSES; i++) {
		notify->fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (notify->fds[i] < 0) {
			int errnum = errno;

			notify_close(notify);
			return err_set_errno(err, errnum,
				"event descriptor %u of %d (raise the limit of open files)", i, SHM_PROCESSES);
		}
	}
	*ret_notify = notify;
	return 0;
}

void
notify_close(struct notify *notify)
{
	if (notify == NULL)
		return;
	for (uint32_t i = 0; i < SHM_PROCESSES; i++)
		if (notify->fds[i] >= 0)
			close(notify->fds[i]);
	free(notify);
}

int
notify_fd(struct notify *notify, uint32_t proc)
{
	return proc < SHM_PROCESSES ? notify->fds[proc] : -1;
}

void
notify_kick(struct notify *notify, uint32_t proc)
{
	static const uint64_t one = 1;
	ssize_t n;

	if (proc >= SHM_PROCESSES)
		return;
	/* EAGAIN: the counter is full, so it is readable anyway. */
	do
		n = write(notify->fds[proc], &one, sizeof one);
	while (n < 0 && errno == EINTR);
}

void
notify_drain(struct notify *notify, uint32_t proc)
{
	uint64_t count;
	ssize_t n;

	if (proc >= SHM_PROCESSES)
		return;
	do
		n = read(notify->fds[proc], &count, sizeof count);
	while (n < 0 && errno == EINTR);
}

void
notify_watch(struct notify *notify, uint32_t proc, enum notify_kind kind, uint32_t slot)
{
	if (proc >= SHM_PROCESSES || slot >= notify->shm->kinds[kind].slots)
		return;
	atomic_fetch_or(interest_at(notify->shm, kind, slot) + proc / 64, UINT64_C(1) << proc % 64);
	atomic_thread_fence(memory_order_seq_cst);
}

void
notify_forget(struct notify *notify, uint32_t proc, enum notify_kind kind, uint32_t slot)
{
	if (proc >= SHM_PROCESSES || slot >= notify->shm->kinds[kind].slots)
		return;
	atomic_fetch_and(interest_at(notify->shm, kind, slot) + proc / 64, ~(UINT64_C(1) << proc % 64));
}

static void
tell(struct notify *notify, uint32_t proc, enum notify_kind kind, uint32_t slot)
{
	const struct notify_kind_area *area = &notify->shm->kinds[kind];
	_Atomic uint64_t *sums = sums_at(notify->shm, kind, proc);
	uint32_t word = slot / 64;

	atomic_fetch_or(sums + area->sums + word, UINT64_C(1) << slot % 64);
	CRASH_POINT();
	atomic_fetch_or(sums + word / 64, UINT64_C(1) << word % 64);
	CRASH_POINT();
	notify_kick(notify, proc);
}

void
notify_post(struct notify *notify, enum notify_kind kind, uint32_t slot)
{
	_Atomic uint64_t *interest;

	if (slot >= notify->shm->kinds[kind].slots)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	interest = interest_at(notify->shm, kind, slot);
	for (uint32_t w = 0; w < NOTIFY_PROC_WORDS; w++) {
		uint64_t mask = atomic_load(interest + w);

		for (; mask != 0; mask &= mask - 1) {
			uint32_t proc = w * 64 + (uint32_t)__builtin_ctzll(mask);

			if (proc < SHM_PROCESSES)
				tell(notify, proc, kind, slot);
		}
	}
}

void
notify_repair(struct notify *notify, const uint64_t alive[NOTIFY_PROC_WORDS])
{
	for (int k = 0; k < NOTIFY_KIND_COUNT; k++)
		for (uint32_t slot = 0; slot < notify->shm->kinds[k].slots; slot++) {
			_Atomic uint64_t *interest = interest_at(notify->shm, (enum notify_kind)k, slot);

			for (uint32_t w = 0; w < NOTIFY_PROC_WORDS; w++)
				if (atomic_load_explicit(interest + w, memory_order_relaxed) & ~alive[w])
					atomic_fetch_and(interest + w, alive[w]);
			notify_post(notify, (enum notify_kind)k, slot);
		}
}

/* A set bit of the word, cleared together with the interest in its slot; UINT32_MAX: the word is 0. */
static uint32_t
take_from_word(struct shm_notify *shm, uint32_t proc, enum notify_kind kind, uint32_t word)
{
	_Atomic uint64_t *bits = sums_at(shm, kind, proc) + shm->kinds[kind].sums + word;
	uint64_t seen = atomic_load(bits);
	uint32_t slot;

	if (seen == 0)
		return UINT32_MAX;
	slot = word * 64 + (uint32_t)__builtin_ctzll(seen);
	atomic_fetch_and(interest_at(shm, kind, slot) + proc / 64, ~(UINT64_C(1) << proc % 64));
	atomic_fetch_and(bits, ~(UINT64_C(1) << slot % 64));
	atomic_thread_fence(memory_order_seq_cst);
	return slot;
}

uint32_t
notify_take(struct notify *notify, uint32_t proc, enum notify_kind kind)
{
	struct shm_notify *shm = notify->shm;
	const struct notify_kind_area *area = &shm->kinds[kind];
	_Atomic uint64_t *sums;

	if (proc >= SHM_PROCESSES)
		return UINT32_MAX;
	sums = sums_at(shm, kind, proc);
	for (uint32_t s = 0; s < area->sums; s++) {
		uint64_t left;

		while ((left = atomic_load(sums + s)) != 0) {
			uint64_t bit = left & -left;
			uint32_t word = s * 64 + (uint32_t)__builtin_ctzll(left);
			uint32_t slot = take_from_word(shm, proc, kind, word);

			if (slot != UINT32_MAX)
				return slot;
			atomic_fetch_and(sums + s, ~bit);
			slot = take_from_word(shm, proc, kind, word);
			if (slot != UINT32_MAX) {
				atomic_fetch_or(sums + s, bit);
				return slot;
			}
		}
	}
	return UINT32_MAX;
}
