/*
 * read.h - an archive as it comes, entry by entry. All memory is bounded, whatever it says.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_READ_H
#define ORCHARD_AGENT_TAR_READ_H

#include "agent/tar/tar.h"
#include "base/cleanup.h"

#include <sys/types.h>

struct err;

struct tar_source {
	/* At most size bytes; 0: the end; -1: it failed, and the source knows why. */
	ssize_t (*read)(void *arg, void *buffer, size_t size);
	void *arg;
};

/* What pax headers say; NULL or has_ false: nothing. */
struct tar_pax {
	char *path, *link, *sparse_name;
	bool has_size, has_uid, has_gid, has_mtime, has_real_size;
	int64_t size, uid, gid, mtime_s, real_size;
	int mtime_ns;
	int sparse_major, sparse_minor; /* -1: not said */
	struct tar_span *spans;
	size_t span_count, span_size;
	bool is_sparse;
	int64_t span_offset; /* of a span whose length is still to come; -1: none */
};

struct tar_reader {
	struct tar_source source;
	struct tar_pax global, next;
	char *long_path, *long_link;
	struct tar_entry entry;
	int64_t left, padding; /* of the entry's data */
	uint64_t entries;
	bool ended;
	bool is_empty; /* it ended before its first byte */
};

void tar_reader_init(struct tar_reader *reader, const struct tar_source *source);
void tar_reader_fini(struct tar_reader *reader);
/*
 * 1: *ret_entry is the reader's until the next call; what is left of the last one's data is skipped. 0: the archive
 * has ended. -1: it is none (ERR_INVALID), or the source failed (ERR_UNAVAILABLE).
 */
int tar_reader_next(struct tar_reader *reader, const struct tar_entry **ret_entry, struct err *err) MUSTCHECK;
/* Data of the entry, of a sparse one that of its spans one after the other; 0: all has come. -1 as above. */
ssize_t tar_reader_data(struct tar_reader *reader, void *buffer, size_t size, struct err *err) MUSTCHECK;

/* pax.c: the records of one header. */
void tar_pax_init(struct tar_pax *pax, const struct tar_pax *from); /* NULL: empty */
void tar_pax_fini(struct tar_pax *pax);
int tar_pax_read(struct tar_pax *pax, const char *text, size_t len, struct err *err) MUSTCHECK;
int tar_pax_add_span(struct tar_pax *pax, int64_t offset, int64_t len, struct err *err) MUSTCHECK;

#endif
