/*
 * record_segment.c - the files of the record log.
 *
 * The file's head carries the time at which the last of its records expires, always
 * raised before the record is written, and in steps, so that it costs a write only
 * now and then: a sweeper reads a few bytes of a file to know whether it can go.
 */
/* SPDX-License-Identifier: MIT */
#include "backend/record_segment.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <zlib.h>

enum {
	SEGMENT_MAGIC = 0x4f4c4f47,
	RECORD_MAGIC = 0x4f524543,
	COMMITTED = 0x434d4954,
	TAKEN_BACK = 0x4241434b,
	SEALED = 0x5345414c,
	ENDED_FROM = 1577836800 /* the year 2020: above the other marks, and no end was before it */
};
enum { EXPIRY_STEP_S = 10, FLUSH_BYTES = 1 << 20, CHECK_BYTES = 256 << 10, CREATE_TRIES = 1000 };

struct segment_head {
	uint32_t magic;
	uint32_t sealed;
	double expires_at;
};

_Static_assert(sizeof(struct segment_head) == 16, "the format of files on disk");
_Static_assert(sizeof(struct record_head) == 56, "the format of files on disk");
_Static_assert(offsetof(struct record_head, head_crc) == 48, "the format of files on disk");

void
segment_name(uint32_t number, char ret_name[SEGMENT_NAME_SIZE])
{
	snprintf(ret_name, SEGMENT_NAME_SIZE, "%010u.log", number);
}

uint32_t
segment_number(const char *name)
{
	char canonical[SEGMENT_NAME_SIZE];
	unsigned long long number = strtoull(name, NULL, 10);

	if (number == 0 || number > UINT32_MAX)
		return 0;
	segment_name((uint32_t)number, canonical);
	return strcmp(name, canonical) == 0 ? (uint32_t)number : 0;
}

/* --- bytes at an offset --- */

static int
write_at(int fd, struct iovec *parts, int count, uint64_t offset)
{
	while (count > 0) {
		ssize_t n = pwritev(fd, parts, count, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		offset += (uint64_t)n;
		while (count > 0 && (size_t)n >= parts->iov_len) {
			n -= (ssize_t)parts->iov_len;
			parts++;
			count--;
		}
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + n;
			parts->iov_len -= (size_t)n;
		}
	}
	return 0;
}

static int
write_one(int fd, void *data, size_t len, uint64_t offset)
{
	struct iovec part = { .iov_base = data, .iov_len = len };

	return write_at(fd, &part, 1, offset);
}

/* True when all of it is there. */
static bool
read_at(int fd, void *data, size_t len, uint64_t offset)
{
	char *at = data;

	while (len > 0) {
		ssize_t n = pread(fd, at, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
		offset += (uint64_t)n;
	}
	return true;
}

static uint32_t
checksum(const void *data, size_t len)
{
	return (uint32_t)crc32_z(0, data, len);
}

/* What the disk refuses is no fault of the request, but that there is no room is told. */
static int
disk_refused(struct err *err, int errnum, const char *what)
{
	err_set_errno(err, errnum, "%s", what);
	if (err->code != ERR_NO_SPACE && err->code != ERR_NO_CAPACITY)
		err->code = ERR_UNAVAILABLE;
	return -1;
}

/* --- a segment's life --- */

int
segment_create(int dirfd, struct shm_index *index, struct segment *ret_segment, struct err *err)
{
	struct segment_head head = { .magic = SEGMENT_MAGIC };
	char name[SEGMENT_NAME_SIZE];
	uint32_t number;
	AUTO_FD fd = -1;

	for (int i = 0; i < CREATE_TRIES && fd < 0; i++) {
		number = record_index_next_segment(index);
		segment_name(number, name);
		fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EEXIST)
			return disk_refused(err, errno, "create a file in the job store");
	}
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, "job store: no free segment number");
	if (write_one(fd, &head, sizeof head, 0) < 0) {
		disk_refused(err, errno, "write to the job store");
		unlinkat(dirfd, name, 0);
		return -1;
	}
	*ret_segment = (struct segment){
		.fd = STEAL_FD(fd),
		.number = number,
		.owner = fork_pid(),
		.size = sizeof head,
		.made_ms = clock_boot_ms(),
	};
	return 0;
}

void
segment_forget(struct segment *segment)
{
	if (segment->fd >= 0)
		close(segment->fd);
	segment->fd = -1;
}

void
segment_close(struct segment *segment)
{
	uint32_t sealed = SEALED;

	if (segment->fd >= 0 && segment->owner == fork_pid() && fdatasync(segment->fd) == 0)
		(void)write_one(segment->fd, &sealed, sizeof sealed, offsetof(struct segment_head, sealed));
	segment_forget(segment);
}

int
segment_lock(struct segment *segment, struct err *err)
{
	struct stat st;

	while (flock(segment->fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return disk_refused(err, errno, "lock a file of the job store");
	if (fstat(segment->fd, &st) == 0 && st.st_nlink > 0 && (uint64_t)st.st_size == segment->size)
		return 0;
	segment_unlock(segment);
	return err_set(err, ERR_STALE, "segment %u of the job store was removed", segment->number);
}

void
segment_unlock(struct segment *segment)
{
	flock(segment->fd, LOCK_UN);
}

/* Writing back goes on in the background, so that closing has little to wait for. */
static void
start_flushing(struct segment *segment)
{
	if (segment->size - segment->flushed < FLUSH_BYTES)
		return;
	sync_file_range(segment->fd, (off_t)segment->flushed, (off_t)(segment->size - segment->flushed),
		SYNC_FILE_RANGE_WRITE);
	segment->flushed = segment->size;
}

static double
round_expiry(double expires_at)
{
	double limit = (double)(INT64_MAX / 2);

	if (expires_at < 0 || expires_at > limit)
		return expires_at;
	return (double)(((int64_t)expires_at / EXPIRY_STEP_S + 1) * EXPIRY_STEP_S);
}

void
segment_head_seal(struct record_head *head, const void *data)
{
	head->magic = RECORD_MAGIC;
	head->committed = 0;
	head->data_crc = checksum(data, head->length);
	head->head_crc = checksum(head, offsetof(struct record_head, head_crc));
}

void
segment_head_decide(struct record_head *head, bool stands)
{
	head->committed = stands ? COMMITTED : TAKEN_BACK;
}

bool
segment_head_stands(const struct record_head *head)
{
	return !head->indexed || head->committed == COMMITTED;
}

static int
append_parts(struct segment *segment, struct iovec *parts, int count, double expires_at, struct err *err)
{
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	if (expires_at > segment->expires_at) {
		segment->expires_at = round_expiry(expires_at);
		segment_set_expires_at(segment->fd, segment->expires_at);
	}
	if (write_at(segment->fd, parts, count, segment->size) < 0) {
		disk_refused(err, errno, "write to the job store");
		segment_rewind(segment, segment->size);
		return -1;
	}
	segment->size += bytes;
	start_flushing(segment);
	return 0;
}

int
segment_append(struct segment *segment, struct record_head *head, const void *data, struct err *err)
{
	struct iovec parts[2] = {
		{ .iov_base = head, .iov_len = sizeof *head },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = head->length },
	};

	segment_head_seal(head, data);
	return append_parts(segment, parts, head->length > 0 ? 2 : 1, head->expires_at, err);
}

int
segment_append_group(struct segment *segment, char *bytes, size_t len, double expires_at, struct err *err)
{
	struct iovec part = { .iov_base = bytes, .iov_len = len };

	return append_parts(segment, &part, 1, expires_at, err);
}

void
segment_commit_group(struct segment *segment, char *bytes, size_t len)
{
	(void)write_one(segment->fd, bytes, len, segment->size - len);
}

void
segment_commit(struct segment *segment, uint64_t offset)
{
	uint32_t committed = COMMITTED;

	(void)write_one(
		segment->fd, &committed, sizeof committed, offset + offsetof(struct record_head, committed));
}

void
segment_take_back(int fd, uint64_t offset)
{
	uint32_t taken_back = TAKEN_BACK;

	(void)write_one(fd, &taken_back, sizeof taken_back, offset + offsetof(struct record_head, committed));
}

void
segment_mark_ended(int fd, uint64_t offset, double ended_at)
{
	uint32_t second = ended_at < (double)UINT32_MAX ? (uint32_t)ended_at : 0;

	if (second >= ENDED_FROM)
		(void)write_one(fd, &second, sizeof second, offset + offsetof(struct record_head, committed));
}

void
segment_rewind(struct segment *segment, uint64_t offset)
{
	/* Should it fail, the sizes differ, and segment_lock() turns to a new segment. */
	while (ftruncate(segment->fd, (off_t)offset) < 0 && errno == EINTR)
		;
	segment->size = offset;
	if (segment->flushed > offset)
		segment->flushed = offset;
}

/* --- reading --- */

int
segment_open(int dirfd, uint32_t number, int flags)
{
	char name[SEGMENT_NAME_SIZE];
	struct stat st;
	AUTO_FD fd = -1;

	segment_name(number, name);
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		fd = openat(dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	else
		errno = ENOENT;
	return STEAL_FD(fd);
}

uint64_t
segment_first(void)
{
	return sizeof(struct segment_head);
}

uint64_t
segment_next(uint64_t offset, const struct record_head *head)
{
	return offset + sizeof *head + head->length;
}

bool
segment_read_head(int fd, uint64_t offset, struct record_head *ret_head)
{
	struct record_head head;

	if (!read_at(fd, &head, sizeof head, offset) || head.magic != RECORD_MAGIC ||
		head.head_crc != checksum(&head, offsetof(struct record_head, head_crc)) ||
		head.length > RECORD_MAX_BYTES)
		return false;
	if (head.committed == TAKEN_BACK)
		head.indexed = false;
	if (head.committed < ENDED_FROM)
		head.committed = head.committed == COMMITTED;
	*ret_head = head;
	return true;
}

bool
segment_read_data(int fd, uint64_t offset, const struct record_head *head, void *data)
{
	return read_at(fd, data, head->length, offset + sizeof *head) &&
		checksum(data, head->length) == head->data_crc;
}

bool
segment_check_data(int fd, uint64_t offset, const struct record_head *head)
{
	AUTO_FREE char *chunk = malloc(CHECK_BYTES);
	uLong crc = 0;
	size_t done = 0;

	if (chunk == NULL)
		abort();
	while (done < head->length) {
		size_t n = head->length - done < CHECK_BYTES ? head->length - done : CHECK_BYTES;

		if (!read_at(fd, chunk, n, offset + sizeof *head + done))
			return false;
		crc = crc32_z(crc, (const Bytef *)chunk, n);
		done += n;
	}
	return (uint32_t)crc == head->data_crc;
}

double
segment_expires_at(int fd, bool *ret_sealed)
{
	struct segment_head head;

	*ret_sealed = false;
	if (!read_at(fd, &head, sizeof head, 0) || head.magic != SEGMENT_MAGIC)
		return 0;
	*ret_sealed = head.sealed == SEALED;
	return head.expires_at;
}

void
segment_set_expires_at(int fd, double expires_at)
{
	(void)write_one(fd, &expires_at, sizeof expires_at, offsetof(struct segment_head, expires_at));
}
