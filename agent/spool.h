/*
 * spool.h - the files that take what does not fit into memory, one a stream, bounded together.
 *
 * They have no name: nobody but the agent can reach them, and they end with it.
 * A file that cannot take more (its own bound, the common one, a full disk)
 * takes nothing from then on; that is never an error of the command. A
 * filesystem in memory is no place: what lies there counts as the sandbox's own
 * memory, and a command would end the sandbox by writing much.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_SPOOL_H
#define ORCHARD_AGENT_SPOOL_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool;
struct spool_store;

enum { SPOOL_MAX_FILES = 256 }; /* of one agent, open at once */

struct spool_store_options {
	int dir_fd; /* where the files are made; stays the caller's; -1: in /tmp, working_dir or / */
	const char *working_dir;
	uint64_t max_bytes; /* of all files together */
	/* Frees a file that is needed least; false: there is none. */
	bool (*evict)(void *arg);
	void *arg;
};

struct spool_store *spool_store_create(const struct spool_store_options *options);
/* After all its files. */
void spool_store_free(struct spool_store *store);
uint64_t spool_store_bytes(const struct spool_store *store);

/* An empty file for at most max bytes; NULL: there is no place for one. */
struct spool *spool_create(struct spool_store *store, uint64_t max) MUSTCHECK;
void spool_free(struct spool *spool);
/* The next bytes of the stream, as far as they fit. */
void spool_add(struct spool *spool, const void *data, size_t len);
/* Takes more again, up to max bytes in all. */
void spool_extend(struct spool *spool, uint64_t max);
/*
 * The last bytes of the stream, kept apart from the first ones, which do not reach up to them. begin says how
 * many will come; false: they do not fit.
 */
bool spool_begin_end(struct spool *spool, uint64_t len) MUSTCHECK;
void spool_add_end(struct spool *spool, const void *data, size_t len);

uint64_t spool_len(const struct spool *spool); /* first bytes */
/* How many they can become, unless the file fails. */
uint64_t spool_reach(const struct spool *spool);
uint64_t spool_end_len(const struct spool *spool); /* last bytes */
/* Bytes at a position of the first, or of the last ones; fewer than max at their end, 0 beyond or on failure. */
size_t spool_read(const struct spool *spool, uint64_t at, void *dst, size_t max);
size_t spool_read_end(const struct spool *spool, uint64_t at, void *dst, size_t max);

#endif
