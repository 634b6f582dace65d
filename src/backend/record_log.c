/*
 * record_log.c - appending to and reading from the record log.
 *
 * Keeping an indexed record takes three steps: its bytes, its entry in the shared
 * index (here the first one wins, atomically), then a mark in the record that says
 * so. Who loses in the index takes its bytes back. A process killed between the
 * steps leaves a record without the mark, and if another process then keeps one of
 * the same key, that one has it: so a rebuilt index prefers marked records and says
 * the same as the lost one. A group goes the same way step by step: all bytes, all entries,
 * all marks. It is all bytes first that makes a group no weaker than its records one by
 * one: whoever is killed on the way has told nobody of any of them (record_batch.h), and
 * what stands unmarked is what a single record killed there would be. One that loses in the
 * index is marked as taken back, because others stand behind it. Nothing is synced per record: what is kept survives the
 * death of any process; of a machine that loses power, the last seconds may be gone.
 *
 * A log is used by one thread of one process. After a fork the child makes a segment
 * of its own.
 */
/* SPDX-License-Identifier: MIT */
#include "backend/record_log_impl.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/id.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <string.h>
#include <sys/stat.h>

enum { DEFAULT_SEGMENT_BYTES = 32 << 20, SEGMENT_AGE_MS = 5 * 60 * 1000, FULL_PAUSE_MS = 1000, LOCK_TRIES = 100 };

int
record_log_open(const struct record_log_options *options, struct shm_index *index, struct record_log **ret_log,
	struct err *err)
{
	struct record_log *log;
	int dirfd;

	if (file_mkdirs(options->dir, 0700, err) < 0)
		return err_prefix(err, "job store");
	dirfd = open(options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return err_set_errno(err, errno, "open %s", options->dir);
	log = alloc_zero(1, sizeof *log);
	log->index = index;
	log->dirfd = dirfd;
	log->segment.fd = -1;
	log->segment_bytes = options->segment_bytes > 0 ? options->segment_bytes : DEFAULT_SEGMENT_BYTES;
	log->max_bytes = options->max_bytes;
	log->keep = options->keep;
	log->keep_ended_s = options->keep_ended_s;
	*ret_log = log;
	return 0;
}

void
record_log_close(struct record_log *log)
{
	if (log == NULL)
		return;
	segment_close(&log->segment);
	for (int i = 0; i < RECORD_CACHED_FDS; i++)
		if (log->cache[i].number != 0)
			close(log->cache[i].fd);
	close(log->dirfd);
	free(log);
}

/* --- appending --- */

/* A locked segment with room for so many bytes. Old ones are closed so that they can expire as a whole. */
static int
lock_segment(struct record_log *log, uint64_t bytes, struct err *err)
{
	struct segment *segment = &log->segment;

	if (segment->fd >= 0 && segment->owner != fork_pid())
		segment_forget(segment);
	if (segment->fd >= 0 &&
		((segment->size > segment_first() && segment->size + bytes > (uint64_t)log->segment_bytes) ||
			clock_boot_ms() - segment->made_ms > SEGMENT_AGE_MS))
		segment_close(segment);
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (segment->fd < 0 && segment_create(log->dirfd, log->index, segment, err) < 0)
			return -1;
		if (segment_lock(segment, err) == 0)
			return 0;
		segment_forget(segment);
	}
	return -1;
}

/* Room in a full index; in vain, that is tried again after a pause. */
static bool
make_room(struct record_log *log)
{
	int64_t now_ms = clock_boot_ms();
	double now = clock_steady();

	if (log->full_ms != 0 && now_ms - log->full_ms < FULL_PAUSE_MS)
		return false;
	/* Without keep all have ended, the youngest within the second that is rounded up to. */
	if (record_index_make_room(log->index, now, log->keep ? now - (double)log->keep_ended_s : now + 2))
		return true;
	log->full_ms = now_ms;
	return false;
}

/* A record of a log without keep is of something that has ended. */
static struct record_life
life_of(const struct record_log *log, const struct record_head *head)
{
	return (struct record_life){ .expires_at = head->expires_at, .ended_at = log->keep ? 0 : head->written_at };
}

/* instead: the record of that key whose place it takes; NULL: there must be none. */
static int
put_in_index(struct record_log *log, const struct record_head *head, const struct record_location *instead,
	struct record_location *location, struct err *err)
{
	struct record_life life = life_of(log, head);

	for (bool again = false;; again = true) {
		int rc;

		if (instead != NULL)
			rc = record_index_move(log->index, &head->key, &life, instead, location, err);
		else
			rc = record_index_put(log->index, &head->key, &life, location, err);
		if (rc == 0 || err->code != ERR_BUSY || again || !make_room(log))
			return rc;
	}
}

static int
append_locked(struct record_log *log, struct record_head *head, const void *data,
	const struct record_location *instead, struct record_location *ret_location, struct err *err)
{
	struct segment *segment = &log->segment;
	struct record_location location = {
		.segment = segment->number, .length = head->length, .offset = segment->size
	};
	uint64_t offset = segment->size;

	if (segment_append(segment, head, data, err) < 0)
		return -1;
	if (head->indexed && put_in_index(log, head, instead, &location, err) < 0) {
		segment_rewind(segment, offset);
		if (err->code == ERR_EXISTS)
			*ret_location = location;
		return -1;
	}
	if (head->indexed)
		segment_commit(segment, offset);
	*ret_location = location;
	return 0;
}

int
record_log_append(struct record_log *log, enum record_kind kind, const struct record_key *key, double expires_at,
	const void *data, size_t len, bool indexed, struct record_location *ret_location, struct err *err)
{
	struct record_head head = {
		.kind = (uint16_t)kind,
		.indexed = indexed,
		.key = *key,
		.expires_at = expires_at,
		.written_at = clock_steady(),
		.length = (uint32_t)len,
	};
	int rc;

	if (len > RECORD_MAX_BYTES)
		return err_set(
			err, ERR_TOO_LARGE, "a record of %zu bytes is over the limit of %d", len, RECORD_MAX_BYTES);
	if (indexed && record_index_get(log->index, key, head.written_at, ret_location))
		return err_set(err, ERR_EXISTS, "a record of that key was there first");
	if (lock_segment(log, sizeof head + len, err) < 0)
		return -1;
	rc = append_locked(log, &head, data, NULL, ret_location, err);
	segment_unlock(&log->segment);
	return rc;
}

/* --- appending many --- */

/* The time at which the last of them expires. */
static double
group_expires_at(const char *bytes, size_t len)
{
	struct record_head head;
	double latest = 0;

	for (size_t at = 0; at < len; at += sizeof head + head.length) {
		memcpy(&head, bytes + at, sizeof head);
		if (head.expires_at > latest)
			latest = head.expires_at;
	}
	return latest;
}

/* True when one of them is indexed, so that the heads say now what became of it. */
static bool
group_put_in_index(struct record_log *log, char *bytes, size_t len, const struct record_location *first)
{
	struct record_head head;
	bool any = false;

	for (size_t at = 0; at < len; at += sizeof head + head.length) {
		struct record_location location = { .segment = first->segment, .offset = first->offset + at };
		struct err err;

		memcpy(&head, bytes + at, sizeof head);
		if (!head.indexed)
			continue;
		location.length = head.length;
		any = true;
		segment_head_decide(&head, put_in_index(log, &head, NULL, &location, &err) == 0);
		memcpy(bytes + at, &head, sizeof head);
	}
	return any;
}

int
record_log_append_group(
	struct record_log *log, char *bytes, size_t len, struct record_location *ret_first, struct err *err)
{
	struct segment *segment = &log->segment;
	int rc;

	if (lock_segment(log, len, err) < 0)
		return -1;
	*ret_first = (struct record_location){ .segment = segment->number, .offset = segment->size };
	rc = segment_append_group(segment, bytes, len, group_expires_at(bytes, len), err);
	if (rc == 0 && group_put_in_index(log, bytes, len, ret_first))
		segment_commit_group(segment, bytes, len);
	segment_unlock(segment);
	return rc;
}

/* --- taking back --- */

/* On disk, too: a new index must not know it. */
static void
take_back(struct record_log *log, const struct record_key *key, const struct record_location *location)
{
	struct record_head head;
	AUTO_FD fd = segment_open(log->dirfd, location->segment, O_RDWR);

	if (fd >= 0 && segment_read_head(fd, location->offset, &head) && memcmp(&head.key, key, sizeof *key) == 0)
		segment_take_back(fd, location->offset);
}

int
record_log_replace(struct record_log *log, enum record_kind kind, const struct record_key *key, double expires_at,
	const void *data, size_t len, struct record_location *location, struct err *err)
{
	struct record_location instead = *location;
	struct record_head head = {
		.kind = (uint16_t)kind,
		.indexed = true,
		.key = *key,
		.expires_at = expires_at,
		.written_at = clock_steady(),
		.length = (uint32_t)len,
	};
	int rc;

	if (len > RECORD_MAX_BYTES)
		return err_set(
			err, ERR_TOO_LARGE, "a record of %zu bytes is over the limit of %d", len, RECORD_MAX_BYTES);
	if (lock_segment(log, sizeof head + len, err) < 0)
		return -1;
	rc = append_locked(log, &head, data, &instead, location, err);
	segment_unlock(&log->segment);
	if (rc == 0)
		take_back(log, key, &instead);
	return rc;
}

void
record_log_release(struct record_log *log, const struct record_key *key, const struct record_location *location)
{
	if (record_index_drop_at(log->index, key, location))
		take_back(log, key, location);
}

/*
 * The end is marked in the record for a new index. Should the record have been replaced just now, its mark says
 * "ended" instead of "taken back"; the one that replaced it was written later, and that is the one a new index takes.
 */
void
record_log_settle(struct record_log *log, const struct record_key *key, const struct record_life *life)
{
	const struct segment *mine = &log->segment;
	struct record_location place;
	AUTO_FD fd = -1;

	if (!record_index_settle(log->index, key, life, &place))
		return;
	if (mine->fd >= 0 && mine->owner == fork_pid() && mine->number == place.segment) {
		segment_mark_ended(mine->fd, place.offset, life->ended_at);
		return;
	}
	fd = segment_open(log->dirfd, place.segment, O_RDWR);
	if (fd >= 0)
		segment_mark_ended(fd, place.offset, life->ended_at);
}

/* --- reading --- */

static void
uncache(struct cached_fd *entry)
{
	close(entry->fd);
	entry->number = 0;
}

/* A descriptor that the cache keeps, or NULL and errno. */
static struct cached_fd *
open_segment(struct record_log *log, uint32_t number)
{
	struct cached_fd *victim = &log->cache[0];
	int fd;

	for (int i = 0; i < RECORD_CACHED_FDS; i++) {
		struct cached_fd *entry = &log->cache[i];

		if (entry->number == number) {
			entry->used = ++log->clock;
			return entry;
		}
		if (entry->number == 0 || (victim->number != 0 && entry->used < victim->used))
			victim = entry;
	}
	fd = segment_open(log->dirfd, number, O_RDONLY);
	if (fd < 0)
		return NULL;
	if (victim->number != 0)
		uncache(victim);
	*victim = (struct cached_fd){ .number = number, .fd = fd, .used = ++log->clock };
	return victim;
}

static bool
is_removed(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || st.st_nlink == 0;
}

static int
read_record(int fd, enum record_kind kind, const struct record_key *key, const struct record_location *location,
	char **ret_data, struct err *err)
{
	AUTO_FREE char *data = NULL;
	struct record_head head;

	if (!segment_read_head(fd, location->offset, &head) || head.length != location->length ||
		head.kind != (uint16_t)kind || (key != NULL && memcmp(&head.key, key, sizeof *key) != 0))
		return err_set(err, ERR_NOT_FOUND, "the record is gone");
	data = malloc((size_t)head.length + 1);
	if (data == NULL)
		return err_set(err, ERR_UNAVAILABLE, "no memory for a record of %u bytes", head.length);
	if (!segment_read_data(fd, location->offset, &head, data)) {
		if (!is_removed(fd))
			log_error("job store: segment %u is damaged at %llu", location->segment,
				(unsigned long long)location->offset);
		return err_set(err, ERR_NOT_FOUND, "the record is gone");
	}
	data[head.length] = '\0';
	*ret_data = STEAL_PTR(data);
	return 0;
}

int
record_log_read(struct record_log *log, enum record_kind kind, const struct record_key *key,
	const struct record_location *location, char **ret_data, size_t *ret_len, struct err *err)
{
	struct cached_fd *file;

	if (location->segment == 0)
		return err_set(err, ERR_NOT_FOUND, "no record was kept");
	file = open_segment(log, location->segment);
	if (file == NULL && errno == ENOENT)
		return err_set(err, ERR_NOT_FOUND, "the record is gone");
	if (file == NULL) {
		err_set_errno(err, errno, "open segment %u of the job store", location->segment);
		/* nothing that the client is denied */
		if (err->code != ERR_NO_CAPACITY)
			err->code = ERR_INTERNAL;
		return -1;
	}
	if (read_record(file->fd, kind, key, location, ret_data, err) < 0) {
		if (is_removed(file->fd))
			uncache(file);
		return -1;
	}
	*ret_len = location->length;
	return 0;
}

int
record_log_find(struct record_log *log, enum record_kind kind, const struct record_key *key, char **ret_data,
	size_t *ret_len, struct err *err)
{
	struct record_location location;

	if (!record_index_get(log->index, key, clock_steady(), &location))
		return err_set(err, ERR_NOT_FOUND, "no such record");
	return record_log_read(log, kind, key, &location, ret_data, ret_len, err);
}

bool
record_log_locate(struct record_log *log, const struct record_key *key, struct record_location *ret_location,
	struct record_life *ret_life)
{
	return record_index_find(log->index, key, clock_steady(), ret_location, ret_life);
}

/* --- keys --- */

struct record_key
record_key_named(enum record_kind kind, const char *tenant, const char *name)
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	uint64_t lead[2] = { (uint64_t)kind, strlen(tenant) };
	struct record_key key;
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)lead, sizeof lead);
	SHA256Update(&ctx, (const uint8_t *)tenant, strlen(tenant));
	SHA256Update(&ctx, (const uint8_t *)name, strlen(name));
	SHA256Final(digest, &ctx);
	memcpy(key.bytes, digest, sizeof key.bytes);
	return key;
}

struct record_key
record_key_job(const char *job_id)
{
	struct record_key key;

	/* What is no UUID is no job either: it has a key that no job has. */
	if (!id_uuid_bytes(job_id, key.bytes))
		key = record_key_named(RECORD_JOB_RESULT, "", job_id);
	return key;
}
