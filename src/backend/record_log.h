/*
 * record_log.h - finished things kept on disk: appended once, read by key, gone after their time.
 *
 * Each process appends to segment files of its own (state_dir/jobs/NNNNNNNNNN.log);
 * a record carries its key, kind, expiry and a checksum. The shared index says where
 * a key stands. A segment goes when all it holds has expired, or, oldest first, when
 * the size budget is spent; in a log that keeps, when the index knows none of it. A full
 * index forgets what ended first. A torn tail (killed writer, power loss) is skipped.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_RECORD_LOG_H
#define ORCHARD_BACKEND_RECORD_LOG_H

#include "base/cleanup.h"
#include "ipc/record_index.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct record_log;

enum record_kind {
	RECORD_JOB_SPEC = 1, /* what a live job was asked to do; not in the index */
	RECORD_JOB_RESULT, /* key: the job's UUID */
	RECORD_TOMBSTONE, /* key: digest of tenant and sandbox id: it existed and was deleted */
	RECORD_KEY /* key: digest of tenant and Idempotency-Key */
};

struct record_log_options {
	const char *dir; /* made if missing */
	int64_t segment_bytes; /* a new segment after so many; 0: 32 MiB */
	int64_t max_bytes; /* job_store_max_bytes; 0: no limit */
	bool keep; /* records stand for what has not ended yet: record_log_settle() says when it has */
	int64_t keep_ended_s; /* with keep: a full index refuses (ERR_BUSY) rather than forgetting what ended later */
};

int record_log_open(const struct record_log_options *options, struct shm_index *index, struct record_log **ret_log,
	struct err *err) MUSTCHECK;
void record_log_close(struct record_log *log);

/*
 * Appends one record. indexed: also puts key into the index; ERR_EXISTS when the key is there already (the
 * first one stands, *ret_location is its place). ERR_NO_SPACE when the disk is full: nothing is kept.
 */
int record_log_append(struct record_log *log, enum record_kind kind, const struct record_key *key,
	double expires_at, const void *data, size_t len, bool indexed, struct record_location *ret_location,
	struct err *err) MUSTCHECK;
/*
 * In a log that keeps: puts a newer record in the place of the one at *location, which is then its place; it expires no earlier.
 * ERR_STALE when the key has another record by now, or none, or what it stands for has ended.
 */
int
record_log_replace(struct record_log *log, enum record_kind kind, const struct record_key *key, double expires_at,
	const void *data, size_t len, struct record_location *location, struct err *err) MUSTCHECK;
/* Takes an indexed record back, also for an index that is filled from the log later; another one of its key stays. */
void
record_log_release(struct record_log *log, const struct record_key *key, const struct record_location *location);
/* The record at location: checksum, kind and key (unless NULL) must match. *ret_data malloc'ed, NUL behind. */
int record_log_read(struct record_log *log, enum record_kind kind, const struct record_key *key,
	const struct record_location *location, char **ret_data, size_t *ret_len, struct err *err) MUSTCHECK;
/* Looks key up in the index and reads it; ERR_NOT_FOUND when it never was or has expired. */
int record_log_find(struct record_log *log, enum record_kind kind, const struct record_key *key, char **ret_data,
	size_t *ret_len, struct err *err) MUSTCHECK;
/* Only where it stands, and whether that has ended. */
bool record_log_locate(struct record_log *log, const struct record_key *key, struct record_location *ret_location,
	struct record_life *ret_life) MUSTCHECK;

/*
 * What an indexed record stands for has ended: from now on it can't be replaced, may make room, and expires then,
 * for this index; not later than when it was appended.
 */
void record_log_settle(struct record_log *log, const struct record_key *key, const struct record_life *life);

/* Reads every segment and fills the index (shared memory is new). Master, before the first fork. */
int record_log_rebuild(struct record_log *log, struct err *err) MUSTCHECK;
/*
 * Reaper: drops segments whose records have all expired or that are over the budget, purges the index.
 * live_from: the oldest segment that a live job's spec stands in (UINT32_MAX: none); it and later ones stay.
 */
int record_log_sweep(struct record_log *log, double now, uint32_t live_from, struct err *err) MUSTCHECK;

/* Keys. */
struct record_key record_key_job(const char *job_id);
struct record_key record_key_named(enum record_kind kind, const char *tenant, const char *name);

#endif
