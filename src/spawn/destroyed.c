/*
 * destroyed.c - a ring of uids in a mapped file, so that it outlives a spawner that is killed.
 *
 * What waits on the listening socket is read by the next spawner, hence the file. One process
 * writes at a time. Killed half-way through an entry it leaves a uid that nobody has, and only
 * the destroy that was not answered yet is forgotten: whoever asked for it asks again. A create
 * is late by what its connection held, less than the ring has room for. Uids are never used
 * twice, so an old entry does no harm and needs no time of its own.
 */
/* SPDX-License-Identifier: MIT */
#include "spawn/destroyed.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct ring {
	uint32_t next; /* the oldest, written next */
	char uids[DESTROYED_MAX][ID_UUID_SIZE];
};

enum { BUCKETS = DESTROYED_MAX };

/* Chains of places in the ring, numbered from 1 on; 0 ends one. */
struct destroyed {
	struct ring *ring;
	uint16_t first[BUCKETS], next[DESTROYED_MAX + 1];
};

/* All of it is allocated first: a full filesystem must not show as a signal later. */
static void *
map_file(int dir_fd)
{
	AUTO_FD fd = -1;
	int rc;

	if (dir_fd < 0)
		return MAP_FAILED;
	fd = openat(dir_fd, "destroyed", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd >= 0 ? posix_fallocate(fd, 0, sizeof(struct ring)) : errno;
	if (rc == 0) {
		void *map = mmap(NULL, sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (map != MAP_FAILED)
			return map;
		rc = errno;
	}
	log_warn(
		"run_dir: what was destroyed is not remembered beyond a restart of this process: %s", strerror(rc));
	return MAP_FAILED;
}

static uint16_t *
chain_of(struct destroyed *destroyed, const char *uid)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < ID_UUID_SIZE && uid[i] != '\0'; i++)
		hash = (hash ^ (unsigned char)uid[i]) * 16777619U;
	return &destroyed->first[hash % BUCKETS];
}

static void
index_add(struct destroyed *destroyed, uint32_t at)
{
	uint16_t *first = chain_of(destroyed, destroyed->ring->uids[at]);

	if (destroyed->ring->uids[at][0] == '\0') /* not used yet */
		return;
	destroyed->next[at + 1] = *first;
	*first = (uint16_t)(at + 1);
}

static void
index_drop(struct destroyed *destroyed, uint32_t at)
{
	uint16_t *link = chain_of(destroyed, destroyed->ring->uids[at]);

	while (*link != 0 && *link != at + 1)
		link = &destroyed->next[*link];
	if (*link != 0)
		*link = destroyed->next[at + 1];
}

struct destroyed *
destroyed_open(int dir_fd)
{
	struct destroyed *destroyed = must_alloc(calloc(1, sizeof *destroyed));
	void *map = map_file(dir_fd);

	if (map == MAP_FAILED)
		map = mmap(NULL, sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		abort();
	destroyed->ring = map;
	for (uint32_t i = 0; i < DESTROYED_MAX; i++)
		index_add(destroyed, i);
	return destroyed;
}

void
destroyed_close(struct destroyed *destroyed)
{
	if (destroyed == NULL)
		return;
	(void)munmap(destroyed->ring, sizeof *destroyed->ring);
	free(destroyed);
}

bool
destroyed_has(struct destroyed *destroyed, const char *uid)
{
	for (uint16_t at = *chain_of(destroyed, uid); at != 0; at = destroyed->next[at]) {
		if (strncmp(destroyed->ring->uids[at - 1], uid, ID_UUID_SIZE) == 0)
			return true;
	}
	return false;
}

void
destroyed_add(struct destroyed *destroyed, const char *uid)
{
	struct ring *ring = destroyed->ring;
	uint32_t at = ring->next % DESTROYED_MAX; /* whatever the file holds */

	if (destroyed_has(destroyed, uid))
		return;
	index_drop(destroyed, at);
	strncpy(ring->uids[at], uid, ID_UUID_SIZE);
	index_add(destroyed, at);
	ring->next = (at + 1) % DESTROYED_MAX;
}
