/* fork.c - one page that the kernel wipes in a child, however the child was made; and what a child does not keep. */
/* SPDX-License-Identifier: MIT */
#include "base/fork.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 };

/* NULL: the kernel cannot do it. */
static uint8_t *
page_make(void)
{
	uint8_t *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (madvise(page, PAGE_BYTES, MADV_WIPEONFORK) == 0)
		return page;
	munmap(page, PAGE_BYTES);
	return NULL;
}

void *
fork_private(size_t size)
{
	static bool asked;
	static uint8_t *page;
	static size_t used;
	size_t step = (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);

	if (!asked)
		page = page_make();
	asked = true;
	if (page == NULL || step > PAGE_BYTES - used)
		return NULL;
	used += step;
	return page + used - step;
}

pid_t
fork_pid(void)
{
	static bool asked;
	static pid_t *pid;

	if (!asked)
		pid = fork_private(sizeof *pid);
	asked = true;
	if (pid == NULL)
		return getpid();
	if (*pid == 0)
		*pid = getpid();
	return *pid;
}

static void
close_between(unsigned from, unsigned to)
{
	if (from <= to && syscall(SYS_close_range, from, to, 0) != 0) {
		for (unsigned fd = from; fd <= to && fd < 65536; fd++)
			close((int)fd);
	}
}

static int
compare_fds(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

void
fork_keep_only(int *kept, size_t count)
{
	unsigned next = 3;

	qsort(kept, count, sizeof *kept, compare_fds);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < (int)next)
			continue;
		if (kept[i] > (int)next)
			close_between(next, (unsigned)kept[i] - 1);
		next = (unsigned)kept[i] + 1;
	}
	close_between(next, ~0U);
}
