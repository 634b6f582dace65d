/*
 * file.h - small files kept whole, and directory trees that go away whole.
 *
 * A file is written under a temporary name in the same directory and renamed,
 * so a reader sees the old one or the new one, never half of it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_FILE_H
#define ORCHARD_BASE_FILE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

/*
 * Reads at most max bytes; *ret_data is malloc'ed and has a NUL behind. ERR_TOO_LARGE beyond max. A pipe is read to its
 * end; one that nobody writes to is an error, and one whose writer says nothing for ten seconds.
 */
int
file_read_at(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len, struct err *err) MUSTCHECK;
int file_write_atomic_at(int dirfd, const char *path, mode_t mode, const void *data, size_t len, bool sync,
	struct err *err) MUSTCHECK;
/* Writes a short text to an existing file (cgroup, proc) in one write(2). */
int file_put_at(int dirfd, const char *path, const char *text, struct err *err) MUSTCHECK;
/* write(2) until all is out; EINTR and short writes are handled. 0 or -1 with errno. */
int file_write_all(int fd, const void *data, size_t len) MUSTCHECK;
/*
 * Makes a memfd unchangeable for good. The kernel refuses with EBUSY while anything holds one of its pages, as reclaim and
 * migration do for a moment: tried again for a second. 0 or -1 with errno.
 */
int file_seal(int fd) MUSTCHECK;
/* mkdir -p; an existing directory is fine. */
int file_mkdirs(const char *path, mode_t mode, struct err *err) MUSTCHECK;
/*
 * Removes name below dirfd with all it holds, never following a link, never
 * crossing into another mounted filesystem; missing is fine. Makes directories
 * searchable first where their mode forbids it.
 */
int file_remove_tree_at(int dirfd, const char *name, struct err *err) MUSTCHECK;

#endif
