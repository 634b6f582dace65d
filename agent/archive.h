/*
 * archive.h - ended jobs whose output lies in spools, the ones the journal has forgotten too.
 *
 * It owns the spools' store and decides which give way: the oldest ended ones,
 * when there are too many or the store needs room. A job that the journal still
 * knows only loses its spool then.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_ARCHIVE_H
#define ORCHARD_AGENT_ARCHIVE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive;
struct job;
struct spool_store;

enum { ARCHIVE_MAX_JOBS = 64 };

struct archive_options {
	int dir_fd; /* as of struct spool_store_options */
	const char *working_dir;
	int64_t max_bytes;
};

struct archive *archive_create(const struct archive_options *options);
/* After the journal's jobs; its own go with it. */
void archive_free(struct archive *archive);
struct spool_store *archive_store(struct archive *archive);
/* An ended job; nothing happens when it has no spool. */
void archive_add(struct archive *archive, struct job *job);
/* The journal forgets it. True: the job is the archive's from now on, and of it only the outputs are left. */
bool archive_take(struct archive *archive, struct job *job) MUSTCHECK;
struct job *archive_find(const struct archive *archive, const uint8_t id[16]); /* a taken one; NULL: none */
size_t archive_jobs(const struct archive *archive);

#endif
