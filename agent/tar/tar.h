/*
 * tar.h - one entry of an archive, and the layout of its header block.
 *
 * Read: ustar, pax (global headers too), GNU's long names, base-256 numbers and all its forms of sparse files, and
 * what came before ustar. Written: ustar, with a pax header for what that can't hold.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TAR_TAR_H
#define ORCHARD_AGENT_TAR_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TAR_BLOCK = 512,
	TAR_MAX_NAME = 4095,
	TAR_MAX_PAX = 1 << 20,
	TAR_MAX_SPANS = 1 << 16 /* pieces of a sparse file */
};

enum tar_type {
	TAR_FILE = '0',
	TAR_HARD_LINK = '1',
	TAR_SYMLINK = '2',
	TAR_CHARACTER = '3',
	TAR_BLOCK_DEVICE = '4',
	TAR_DIRECTORY = '5',
	TAR_FIFO = '6'
};

struct tar_span {
	int64_t offset, len;
};

struct tar_entry {
	enum tar_type type;
	char *path, *link; /* bytes; link NULL: none */
	unsigned mode; /* of its bits 07777 */
	int64_t uid, gid;
	int64_t size; /* of the file; in the archive it may be fewer bytes, see spans */
	int64_t mtime_s;
	int mtime_ns;
	unsigned dev_major, dev_minor;
	struct tar_span *spans; /* of a sparse file, rising, without overlap; NULL: not sparse */
	size_t span_count;
};

/* The header block as it lies in the file. */
struct tar_header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char link[100];
	char magic[6], version[2];
	char uname[32], gname[32];
	char dev_major[8], dev_minor[8];
	char prefix[155];
	char rest[12];
};

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "the header is one block");

#endif
