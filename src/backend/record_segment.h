/*
 * record_segment.h - one file of the record log: its format, and who may write and remove it.
 *
 * A file is a head, then records one behind the other, each a head and its data.
 * Only the process that made a segment appends to it, so offsets need no
 * coordination, and a segment that a killed process left is never written again.
 * Every append happens under the file's lock (flock), and removing as well: whoever
 * removes holds the lock, truncates, unlinks; the writer, once it has the lock, sees
 * that its file is gone and starts another. So a segment that its owner has open can
 * be removed at any time, and no record that was kept is lost by it. The kernel
 * drops the lock of a killed process.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_RECORD_SEGMENT_H
#define ORCHARD_BACKEND_RECORD_SEGMENT_H

#include "base/cleanup.h"
#include "ipc/record_index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

enum { SEGMENT_NAME_SIZE = 16, RECORD_MAX_BYTES = 256 << 20 };

/* In front of a record's data; in the host's byte order. */
struct record_head {
	uint32_t magic;
	uint16_t kind;
	uint16_t indexed;
	struct record_key key;
	double expires_at;
	double written_at;
	uint32_t length; /* of the data behind it */
	uint32_t data_crc;
	uint32_t head_crc; /* of all above */
	uint32_t
		committed; /* it was in the index; see record_log.c. As read: 0: not; 1; later: it has ended then */
};

/* A segment that this process appends to. */
struct segment {
	int fd; /* -1: none */
	uint32_t number;
	pid_t owner;
	uint64_t size;
	uint64_t flushed; /* writing back has been started up to here */
	double expires_at; /* as its head says: no record lives longer */
	int64_t made_ms;
};

void segment_name(uint32_t number, char ret_name[SEGMENT_NAME_SIZE]);
/* 0 when name is not that of a segment. */
uint32_t segment_number(const char *name);

int segment_create(int dirfd, struct shm_index *index, struct segment *ret_segment, struct err *err) MUSTCHECK;
/* Makes it durable, marks it so, closes it. Nothing to do when there is none. */
void segment_close(struct segment *segment);
/* Closes it without any of that: it is another process's. */
void segment_forget(struct segment *segment);

/* Takes the file's lock; ERR_STALE when the file was removed or is not as this process left it. */
int segment_lock(struct segment *segment, struct err *err) MUSTCHECK;
void segment_unlock(struct segment *segment);
/* With the lock; on failure the file is as it was. Checksums are filled in. */
int segment_append(struct segment *segment, struct record_head *head, const void *data, struct err *err) MUSTCHECK;
void segment_commit(struct segment *segment, uint64_t offset);

/* Many records at once, their sealed heads and data one behind the other: with the lock, else as above. */
void segment_head_seal(struct record_head *head, const void *data);
int segment_append_group(
	struct segment *segment, char *bytes, size_t len, double expires_at, struct err *err) MUSTCHECK;
/* Each head says then whether its record is in the index; the group is still the last of the file. */
void segment_head_decide(struct record_head *head, bool stands);
bool segment_head_stands(const struct record_head *head);
void segment_commit_group(struct segment *segment, char *bytes, size_t len);

/* Of a record that was in the index and is not any more: a new index passes it over. */
void segment_take_back(int fd, uint64_t offset);
/* What an indexed record stands for has ended, at that time (wall clock). */
void segment_mark_ended(int fd, uint64_t offset, double ended_at);
/* With the lock: takes the last record back. */
void segment_rewind(struct segment *segment, uint64_t offset);

/*
 * Opens an existing one, to read or to change; -1 with errno, ENOENT also where something stands that is no plain file:
 * a fifo would hold up whoever reads it.
 */
int segment_open(int dirfd, uint32_t number, int flags);
/* Reads and checks a record's head; false when there is none (the end, or torn). */
bool segment_read_head(int fd, uint64_t offset, struct record_head *ret_head);
/* Reads the data behind a head into data (head->length bytes); false when it is not what was written. */
bool segment_read_data(int fd, uint64_t offset, const struct record_head *head, void *data);
/* The same in bounded memory. */
bool segment_check_data(int fd, uint64_t offset, const struct record_head *head);
uint64_t segment_first(void);
uint64_t segment_next(uint64_t offset, const struct record_head *head);

/* When the last of its records expires; 0 when the file's head is not readable. *ret_sealed: it was closed in order. */
double segment_expires_at(int fd, bool *ret_sealed);
void segment_set_expires_at(int fd, double expires_at);

#endif
