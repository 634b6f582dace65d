/*
 * server_life.c - two moments and an offset, each a single word, so that no death leaves half of it.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/server_life.h"
#include "base/clock.h"
#include "ipc/section.h"

#include <stdatomic.h>

struct shm_life {
	int64_t steady_offset_us; /* of clock_steady(); written once, before anybody else is there */
	_Atomic int64_t served_ms; /* last seen serving */
	_Atomic int64_t since_ms;
};

size_t
server_life_section_size(void)
{
	return sizeof(struct shm_life);
}

void
server_life_section_init(struct shm_life *life)
{
	int64_t now_ms = clock_boot_ms();

	life->steady_offset_us = clock_wall_us() - clock_boot_us();
	atomic_store_explicit(&life->served_ms, now_ms, memory_order_relaxed);
	atomic_store_explicit(&life->since_ms, now_ms, memory_order_relaxed);
	clock_steady_start(life->steady_offset_us);
}

void
server_life_section_adopt(struct shm_life *life)
{
	clock_steady_start(life->steady_offset_us);
}

void
server_life_begin(struct shm_life *life, int64_t now_ms)
{
	int64_t silent_ms = now_ms - atomic_load_explicit(&life->served_ms, memory_order_relaxed);

	/* served_ms last: killed in between, the next one sees the same silence. */
	if (silent_ms > SERVER_LIFE_OUTAGE_MS)
		atomic_store_explicit(&life->since_ms, now_ms, memory_order_release);
	atomic_store_explicit(&life->served_ms, now_ms, memory_order_release);
}

void
server_life_end(struct shm_life *life, int64_t now_ms)
{
	atomic_store_explicit(&life->served_ms, now_ms, memory_order_release);
}

int64_t
server_life_since(const struct shm_life *life, int64_t now_ms)
{
	if (now_ms - atomic_load_explicit(&life->served_ms, memory_order_acquire) > SERVER_LIFE_OUTAGE_MS)
		return now_ms;
	return atomic_load_explicit(&life->since_ms, memory_order_acquire);
}
