/*
 * unpack.h - entries of an archive into files below a directory.
 *
 * Each file is whole before it has its name, and takes the place of what has it; directories keep what is in them.
 * Nothing of an entry that is refused is written; what came before it stays.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_UNPACK_H
#define ORCHARD_AGENT_TAR_UNPACK_H

#include "agent/tar/place.h"
#include "agent/tar/tar.h"
#include "base/cleanup.h"

#include <stdint.h>
#include <sys/types.h>

struct err;
struct tar_reader;
struct unpack_dir;

struct unpack {
	struct place place;
	bool owners;
	/* Told where a file lies while it has no name yet; NULL path: nowhere. */
	void (*on_temporary)(const char *path, void *arg);
	void *arg;
	char temporary[48];
	bool announced; /* on_temporary knows of the root's */
	bool temporary_beside; /* the root takes no files, or another file system is mounted below */
	struct unpack_dir *dirs; /* whose times and modes are set at the end */
	size_t dir_count, dir_size;
	int64_t entries, bytes, skipped;
};

enum { UNPACK_DONE, UNPACK_REFUSED, UNPACK_FAILED, UNPACK_CUT };

void unpack_init(struct unpack *unpack, int root_fd, const char *root, bool any_link);
void unpack_fini(struct unpack *unpack);
/*
 * One entry with its data. UNPACK_REFUSED: by what it is (err); UNPACK_FAILED: by the system (errno); UNPACK_CUT:
 * the reader failed (err).
 */
int unpack_entry(
	struct unpack *unpack, const struct tar_entry *entry, struct tar_reader *reader, struct err *err) MUSTCHECK;
/* After the last one: modes and times of directories. */
void unpack_settle(struct unpack *unpack);

#endif
