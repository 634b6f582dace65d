/* spool.c - unnamed files and the count of what they hold. */
/* SPDX-License-Identifier: MIT */
#include "agent/spool.h"

#include "base/alloc.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { SPOOL_PLACES = 3 };

struct spool_store {
	struct spool_store_options options;
	int places[SPOOL_PLACES]; /* directories, tried in turn; -1: none */
	bool places_are_ours;
	uint64_t bytes;
	size_t files;
};

struct spool {
	struct spool_store *store;
	int fd;
	uint64_t max;
	uint64_t len; /* the first bytes stand at 0 */
	uint64_t end_len, end_max; /* the last ones behind them */
	bool full;
};

static bool
spool_is_place(int fd)
{
	struct statfs st;

	return fd >= 0 && fstatfs(fd, &st) == 0 && (unsigned long)st.f_type != TMPFS_MAGIC &&
		(unsigned long)st.f_type != RAMFS_MAGIC;
}

/* Opened now, before a command could put something else in their place. */
struct spool_store *
spool_store_create(const struct spool_store_options *options)
{
	const char *const paths[SPOOL_PLACES] = { "/tmp", options->working_dir, "/" };
	struct spool_store *store = alloc_zero(1, sizeof *store);

	store->options = *options;
	store->places_are_ours = options->dir_fd < 0;
	for (size_t i = 0; i < SPOOL_PLACES; i++)
		store->places[i] = store->places_are_ours ? open(paths[i], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (!store->places_are_ours)
		store->places[0] = options->dir_fd;
	return store;
}

void
spool_store_free(struct spool_store *store)
{
	for (size_t i = 0; i < SPOOL_PLACES; i++)
		if (store->places_are_ours && store->places[i] >= 0)
			close(store->places[i]);
	free(store);
}

uint64_t
spool_store_bytes(const struct spool_store *store)
{
	return store->bytes;
}

static int
spool_open(int place)
{
	char name[ID_UUID_SIZE + 16], uuid[ID_UUID_SIZE];
	int fd = openat(place, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	id_uuid4(uuid);
	snprintf(name, sizeof name, ".spool-%s", uuid);
	fd = openat(place, name, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		unlinkat(place, name, 0);
	return fd;
}

struct spool *
spool_create(struct spool_store *store, uint64_t max)
{
	struct spool *spool;
	int fd = -1;

	if (store->options.max_bytes == 0)
		return NULL;
	while (store->files >= SPOOL_MAX_FILES)
		if (!store->options.evict(store->options.arg))
			return NULL;
	for (size_t i = 0; i < SPOOL_PLACES && fd < 0; i++)
		if (spool_is_place(store->places[i]))
			fd = spool_open(store->places[i]);
	if (fd < 0)
		return NULL;
	spool = alloc_zero(1, sizeof *spool);
	*spool = (struct spool){ .store = store, .fd = fd, .max = max };
	store->files++;
	return spool;
}

void
spool_free(struct spool *spool)
{
	close(spool->fd);
	spool->store->files--;
	spool->store->bytes -= spool->len + spool->end_len;
	free(spool);
}

/* How many of len bytes there is room for, once others gave way. */
static uint64_t
spool_room(struct spool_store *store, uint64_t len)
{
	uint64_t max = store->options.max_bytes;

	while (len > max - store->bytes)
		if (!store->options.evict(store->options.arg))
			return max - store->bytes;
	return len;
}

static size_t
spool_write(struct spool *spool, const char *data, size_t len)
{
	uint64_t at = spool->len + spool->end_len;
	size_t done = 0;

	while (done < len) {
		ssize_t put = pwrite(spool->fd, data + done, len - done, (off_t)(at + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			break;
		done += (size_t)put;
	}
	spool->store->bytes += done;
	return done;
}

void
spool_add(struct spool *spool, const void *data, size_t len)
{
	uint64_t fits = spool->max - spool->len;
	size_t done;

	if (spool->full || len == 0)
		return;
	if (fits > len)
		fits = len;
	done = spool_write(spool, data, (size_t)spool_room(spool->store, fits));
	spool->len += done;
	spool->full = done < len;
}

void
spool_extend(struct spool *spool, uint64_t max)
{
	spool->max = max;
	spool->full = spool->len >= max;
}

bool
spool_begin_end(struct spool *spool, uint64_t len)
{
	spool->full = true;
	if (spool_room(spool->store, len) < len)
		return false;
	spool->end_max = len;
	return true;
}

void
spool_add_end(struct spool *spool, const void *data, size_t len)
{
	size_t done = spool->end_max < len ? 0 : spool_write(spool, data, len);

	spool->end_len += done;
	spool->end_max -= done;
	if (done == len)
		return;
	/* Last bytes with others missing behind them are not the last bytes. */
	spool->store->bytes -= spool->end_len;
	spool->end_len = spool->end_max = 0;
	if (ftruncate(spool->fd, (off_t)spool->len) < 0)
		return;
}

uint64_t
spool_len(const struct spool *spool)
{
	return spool->len;
}

uint64_t
spool_reach(const struct spool *spool)
{
	return spool->full ? spool->len : spool->max;
}

uint64_t
spool_end_len(const struct spool *spool)
{
	return spool->end_max == 0 ? spool->end_len : 0;
}

static size_t
spool_read_file(int fd, uint64_t at, void *dst, uint64_t len)
{
	ssize_t got;

	do {
		got = pread(fd, dst, (size_t)len, (off_t)at);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? 0 : (size_t)got;
}

size_t
spool_read(const struct spool *spool, uint64_t at, void *dst, size_t max)
{
	if (at >= spool->len)
		return 0;
	return spool_read_file(spool->fd, at, dst, max < spool->len - at ? max : spool->len - at);
}

size_t
spool_read_end(const struct spool *spool, uint64_t at, void *dst, size_t max)
{
	uint64_t len = spool_end_len(spool);

	if (at >= len)
		return 0;
	return spool_read_file(spool->fd, spool->len + at, dst, max < len - at ? max : len - at);
}
