/*
 * shm.c - makes, checks and adopts the mapping; hands out its sections.
 *
 * The layout is a function of the four sizes and of the build. The header repeats
 * both, and the boot in which the locks were made; a file that differs in any of it
 * is replaced, never converted. A new file is filled under a temporary name and
 * renamed when its magic is in place, so that no one ever adopts half of one.
 * What every server needs is reserved at once, the records are as they come (room.h): a full
 * file system is an answer, at the start or to whoever wants one record more, and never a SIGBUS.
 */
/* SPDX-License-Identifier: MIT */
#include "ipc/shm.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/lane_table.h"
#include "ipc/notify.h"
#include "ipc/record_index.h"
#include "ipc/room.h"
#include "ipc/sandbox_table.h"
#include "ipc/scoreboard.h"
#include "ipc/section.h"
#include "ipc/server_life.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Raised whenever anything in the mapping means something else than before. */
enum { SHM_VERSION = 20 };
enum { SHM_MAGIC = 0x4f524348, PAGE = 4096 };

enum section {
	SECTION_SCOREBOARD,
	SECTION_NOTIFY,
	SECTION_EXEC_LOCK,
	SECTION_JOBS,
	SECTION_SANDBOXES,
	SECTION_INDEX,
	SECTION_KEYS,
	SECTION_LANES,
	SECTION_LIFE,
	SECTION_COUNT
};

/* What must be equal for a mapping to be understood. */
struct shm_layout {
	uint32_t version;
	uint32_t sandbox_record, job_record, lock; /* sizeof */
	struct shm_sizes sizes;
	uint64_t offsets[SECTION_COUNT];
	uint64_t bytes;
	char boot_id[40];
};

struct shm_header {
	_Atomic uint32_t magic; /* stored last */
	uint32_t pad;
	struct shm_layout layout;
};

_Static_assert(sizeof(struct shm_layout) == 160, "layout changed: raise SHM_VERSION");
_Static_assert(sizeof(struct shm_header) <= PAGE, "the header is one page");

struct shm {
	char *base;
	struct shm_layout layout;
};

static void
cleanup_shm(struct shm **shm)
{
	shm_close(*shm);
}

#define AUTO_SHM __attribute__((cleanup(cleanup_shm)))

static void
lay_out(struct shm_layout *layout, const struct shm_sizes *sizes)
{
	const uint64_t bytes[SECTION_COUNT] = {
		[SECTION_SCOREBOARD] = scoreboard_section_size(),
		[SECTION_NOTIFY] = notify_section_size(sizes->sandboxes, sizes->jobs),
		[SECTION_EXEC_LOCK] = exec_lock_section_size(sizes->sandboxes, sizes->jobs),
		[SECTION_JOBS] = job_table_section_size(sizes->jobs),
		[SECTION_SANDBOXES] = sandbox_table_section_size(sizes->sandboxes),
		[SECTION_INDEX] = record_index_section_size(sizes->records),
		[SECTION_KEYS] = record_index_section_size(sizes->keys),
		[SECTION_LANES] = lane_table_section_size(sizes->lanes),
		[SECTION_LIFE] = server_life_section_size(),
	};
	uint64_t at = PAGE;

	memset(layout, 0, sizeof *layout);
	layout->version = SHM_VERSION;
	layout->sandbox_record = sizeof(struct sandbox_record);
	layout->job_record = sizeof(struct job_record);
	layout->lock = sizeof(pthread_mutex_t);
	layout->sizes = *sizes;
	for (int i = 0; i < SECTION_COUNT; i++) {
		layout->offsets[i] = at;
		at += (bytes[i] + PAGE - 1) / PAGE * PAGE;
	}
	layout->bytes = at;
	proc_boot_id(layout->boot_id);
}

static void *
section(struct shm *shm, enum section which)
{
	return shm->base + shm->layout.offsets[which];
}

static int
map(struct shm *shm, int fd, const char *path, struct err *err)
{
	void *base = mmap(NULL, shm->layout.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return err_set_errno(
			err, errno, "map %s (%llu MiB)", path, (unsigned long long)shm->layout.bytes >> 20);
	shm->base = base;
	return 0;
}

/* --- a new one --- */

static void
init_sections(struct shm *shm)
{
	const struct shm_sizes *sizes = &shm->layout.sizes;

	scoreboard_section_init(shm_scoreboard(shm));
	notify_section_init(shm_notify(shm), sizes->sandboxes, sizes->jobs);
	exec_lock_section_init(shm_exec_lock(shm), sizes->sandboxes, sizes->jobs);
	job_table_section_init(shm_jobs(shm), sizes->jobs);
	sandbox_table_section_init(shm_sandboxes(shm), sizes->sandboxes);
	record_index_section_init(shm_index(shm), sizes->records);
	record_index_section_init(shm_keys(shm), sizes->keys);
	lane_table_section_init(shm_lanes(shm), sizes->lanes);
	server_life_section_init(shm_life(shm));
}

static int
reserve(int fd, const char *path, uint64_t from, uint64_t bytes, struct err *err)
{
	int rc;

	do
		rc = posix_fallocate(fd, (off_t)from, (off_t)bytes);
	while (rc == EINTR);
	if (rc == ENOSPC || rc == EFBIG)
		return err_set(err, ERR_NO_SPACE,
			"no room for shared memory at %s: lower max_sandboxes, exec_queue_limit, "
			"job_store_max_records or idempotency_max_records, or give run_dir a larger file system",
			path);
	if (rc != 0)
		return err_set_errno(err, rc, "reserve shared memory at %s", path);
	return 0;
}

/* What must be there from the start; of a mapping that is adopted it is there already. */
static int
reserve_fixed(const struct shm *shm, int fd, const char *path, struct err *err)
{
	const struct shm_sizes *sizes = &shm->layout.sizes;
	const uint64_t *at = shm->layout.offsets;
	const struct {
		uint64_t from, bytes;
	} parts[] = {
		{ 0, at[SECTION_JOBS] },
		{ at[SECTION_JOBS], job_table_section_fixed_size(sizes->jobs) },
		{ at[SECTION_SANDBOXES], sandbox_table_section_fixed_size(sizes->sandboxes) },
		{ at[SECTION_INDEX], record_index_section_fixed_size(sizes->records) },
		{ at[SECTION_KEYS], record_index_section_fixed_size(sizes->keys) },
		{ at[SECTION_LANES], lane_table_section_fixed_size(sizes->lanes) },
		{ at[SECTION_LIFE], shm->layout.bytes - at[SECTION_LIFE] },
	};

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (reserve(fd, path, parts[i].from, parts[i].bytes, err) < 0)
			return -1;
	}
	return 0;
}

static int
fill(struct shm *shm, int fd, const char *path, struct err *err)
{
	struct shm_header *header;

	if (ftruncate(fd, (off_t)shm->layout.bytes) < 0)
		return err_set_errno(err, errno, "size of %s", path);
	if (reserve_fixed(shm, fd, path, err) < 0 || map(shm, fd, path, err) < 0)
		return -1;
	if (!room_can_grow(shm->base) && reserve(fd, path, 0, shm->layout.bytes, err) < 0)
		return -1;
	header = (struct shm_header *)shm->base;
	header->layout = shm->layout;
	init_sections(shm);
	atomic_store_explicit(&header->magic, SHM_MAGIC, memory_order_release);
	return 0;
}

static int
create(struct shm *shm, const char *path, struct err *err)
{
	char temporary[512];
	AUTO_FD fd = -1;

	if (snprintf(temporary, sizeof temporary, "%s.new", path) >= (int)sizeof temporary)
		return err_set(err, ERR_INVALID, "path of the shared memory is too long: %s", path);
	unlink(temporary);
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set_errno(err, errno, "create %s", temporary);
	if (fill(shm, fd, path, err) < 0)
		goto fail;
	if (rename(temporary, path) < 0) {
		err_set_errno(err, errno, "rename %s to %s", temporary, path);
		goto fail;
	}
	return 0;
fail:
	unlink(temporary);
	return -1;
}

/* --- an earlier one --- */

static void
adopt_sections(struct shm *shm)
{
	const struct shm_sizes *sizes = &shm->layout.sizes;

	scoreboard_section_adopt(shm_scoreboard(shm));
	notify_section_adopt(shm_notify(shm), sizes->sandboxes, sizes->jobs);
	exec_lock_section_adopt(shm_exec_lock(shm), sizes->sandboxes, sizes->jobs);
	job_table_section_adopt(shm_jobs(shm), sizes->jobs);
	sandbox_table_section_adopt(shm_sandboxes(shm), sizes->sandboxes);
	record_index_section_adopt(shm_index(shm), sizes->records);
	record_index_section_adopt(shm_keys(shm), sizes->keys);
	lane_table_section_adopt(shm_lanes(shm), sizes->lanes);
	server_life_section_adopt(shm_life(shm));
}

/* Why the file cannot be adopted, or NULL. */
static const char *
find_obstacle(const struct shm *shm, int fd)
{
	const struct shm_layout *ours = &shm->layout;
	struct shm_header theirs;
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "it is not a regular file";
	if (pread(fd, &theirs, sizeof theirs, 0) != (ssize_t)sizeof theirs || theirs.magic != SHM_MAGIC)
		return "it was never completed";
	if (theirs.layout.version != ours->version || theirs.layout.sandbox_record != ours->sandbox_record ||
		theirs.layout.job_record != ours->job_record || theirs.layout.lock != ours->lock)
		return "another version of the server made it";
	if (memcmp(&theirs.layout.sizes, &ours->sizes, sizeof ours->sizes) != 0)
		return "max_sandboxes, exec_queue_limit, job_store_max_records or idempotency_max_records have "
		       "changed";
	if (memcmp(theirs.layout.boot_id, ours->boot_id, sizeof ours->boot_id) != 0)
		return "it is from before the last boot";
	if (memcmp(&theirs.layout, ours, sizeof *ours) != 0 || (uint64_t)st.st_size != ours->bytes)
		return "its layout differs";
	return NULL;
}

/* 1: adopted, 0: there is none that can be, -1: error. */
static int
adopt(struct shm *shm, const char *path, struct err *err)
{
	AUTO_FD fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	const char *obstacle;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_set_errno(err, errno, "open %s", path);
	obstacle = find_obstacle(shm, fd);
	if (obstacle != NULL) {
		log_warn("shared memory %s is replaced by an empty one: %s", path, obstacle);
		return 0;
	}
	if (reserve_fixed(shm, fd, path, err) < 0 || map(shm, fd, path, err) < 0)
		return -1;
	adopt_sections(shm);
	return 1;
}

int
shm_open_or_create(
	const char *path, const struct shm_sizes *sizes, struct shm **ret_shm, bool *ret_adopted, struct err *err)
{
	AUTO_SHM struct shm *shm = calloc(1, sizeof *shm);
	int adopted;

	if (shm == NULL)
		abort();
	lay_out(&shm->layout, sizes);
	adopted = adopt(shm, path, err);
	if (adopted < 0 || (adopted == 0 && create(shm, path, err) < 0))
		return -1;
	*ret_adopted = adopted == 1;
	*ret_shm = STEAL_PTR(shm);
	return 0;
}

const char *
shm_obstacle(const char *path, const struct shm_sizes *sizes)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct shm shm = { 0 };

	if (fd < 0)
		return NULL;
	lay_out(&shm.layout, sizes);
	return find_obstacle(&shm, fd);
}

void
shm_close(struct shm *shm)
{
	if (shm == NULL)
		return;
	if (shm->base != NULL)
		munmap(shm->base, shm->layout.bytes);
	free(shm);
}

struct shm_sandboxes *
shm_sandboxes(struct shm *shm)
{
	return section(shm, SECTION_SANDBOXES);
}

struct shm_exec_lock *
shm_exec_lock(struct shm *shm)
{
	return section(shm, SECTION_EXEC_LOCK);
}

struct shm_jobs *
shm_jobs(struct shm *shm)
{
	return section(shm, SECTION_JOBS);
}

struct shm_lanes *
shm_lanes(struct shm *shm)
{
	return section(shm, SECTION_LANES);
}

struct shm_index *
shm_index(struct shm *shm)
{
	return section(shm, SECTION_INDEX);
}

struct shm_index *
shm_keys(struct shm *shm)
{
	return section(shm, SECTION_KEYS);
}

struct shm_scoreboard *
shm_scoreboard(struct shm *shm)
{
	return section(shm, SECTION_SCOREBOARD);
}

struct shm_notify *
shm_notify(struct shm *shm)
{
	return section(shm, SECTION_NOTIFY);
}

struct shm_life *
shm_life(struct shm *shm)
{
	return section(shm, SECTION_LIFE);
}
