/* room.c - asks for the pages of the next entries. */
/* SPDX-License-Identifier: MIT */
#include "ipc/room.h"
#include "ipc/crash_point.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { STEP_BYTES = 128 * 1024, PAGE = 4096 };

/* A kernel that does not know the word has all of it since the start, see room_can_grow. */
static bool
ask(char *from, size_t len)
{
	uintptr_t first = (uintptr_t)from / PAGE * PAGE;
	uintptr_t end = ((uintptr_t)from + len + PAGE - 1) / PAGE * PAGE;
	int rc;

	do
		rc = madvise((void *)first, end - first, MADV_POPULATE_WRITE);
	while (rc != 0 && (errno == EINTR || errno == EAGAIN));
	return rc == 0 || errno == EINVAL;
}

bool
room_grow(const struct room *room, uint32_t ready)
{
	uint32_t step = room->stride < STEP_BYTES ? (uint32_t)(STEP_BYTES / room->stride) : 1;
	uint32_t left = room->total - ready;

	if (ready >= room->total)
		return false;
	if (step > left)
		step = left;
	if (!ask(room->first + (size_t)ready * room->stride, (size_t)step * room->stride))
		return false;
	CRASH_POINT();
	/* When it is not what it was, another process was faster. */
	(void)atomic_compare_exchange_strong(room->ready, &ready, ready + step);
	CRASH_POINT();
	return true;
}

bool
room_can_grow(void *page)
{
	return madvise(page, PAGE, MADV_POPULATE_WRITE) == 0 || errno != EINVAL;
}
