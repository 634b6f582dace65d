/*
 * pack.c - a directory as an archive, streamed.
 *
 * What may not be read is found before the first byte, so that it can still be refused. Later there is only one way to
 * say that something failed: an answer that is visibly cut.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/archive_call.h"
#include "agent/tar/inodes.h"
#include "agent/tar/walk.h"
#include "agent/tar/write.h"

#include "agent/files/file_call.h"
#include "agent/files/helper_side.h"
#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { PACK_OUT = 256 << 10, PACK_WHOLE = 64 << 10, PACK_STOPPED = 1 };

struct pack {
	struct helper_side *side;
	const struct archive_call *call;
	struct inode_names *inodes;
	struct tar_text header;
	size_t len;
	char out[PACK_OUT];
};

/* --- what can be read --- */

static int
check_unreadable(const char *path, int errnum, void *arg)
{
	struct pack *pack = arg;

	if (pack->call->skip && errnum == EACCES)
		return 0;
	helper_refuse_errno(
		pack->side, errnum, "%s/%s", strcmp(pack->call->path, "/") == 0 ? "" : pack->call->path, path);
	return PACK_STOPPED;
}

static int
check_entry(const struct walk_entry *entry, void *arg)
{
	if (!S_ISREG(entry->st.st_mode) || faccessat(entry->dir_fd, entry->name, R_OK, AT_EACCESS) == 0 ||
		errno == ENOENT)
		return 0;
	return check_unreadable(entry->path, errno, arg);
}

/* --- out --- */

static int
pack_flush(struct pack *pack)
{
	size_t len = pack->len;

	pack->len = 0;
	return len > 0 && helper_write(pack->side, pack->out, len) < 0 ? PACK_STOPPED : 0;
}

static int
pack_put(struct pack *pack, const void *data, size_t len)
{
	const char *from = data;

	while (len > 0) {
		size_t room = PACK_OUT - pack->len, part = len < room ? len : room;

		memcpy(pack->out + pack->len, from, part);
		pack->len += part;
		from += part;
		len -= part;
		if (pack->len == PACK_OUT && pack_flush(pack) != 0)
			return PACK_STOPPED;
	}
	return 0;
}

static int
pack_pad(struct pack *pack, size_t len)
{
	static const char zeros[2 * TAR_BLOCK];

	return pack_put(pack, zeros, len);
}

static int
pack_header(struct pack *pack, const struct tar_entry *entry)
{
	tar_write_header(entry, &pack->header);
	return pack_put(pack, pack->header.bytes, pack->header.len);
}

/* --- entries --- */

static struct tar_entry
pack_entry(const struct walk_entry *found, enum tar_type type)
{
	return (struct tar_entry){
		.type = type,
		.path = (char *)(uintptr_t)found->path,
		.mode = found->st.st_mode & 07777,
		.uid = found->st.st_uid,
		.gid = found->st.st_gid,
		.mtime_s = found->st.st_mtim.tv_sec,
		.mtime_ns = (int)found->st.st_mtim.tv_nsec,
		.dev_major = major(found->st.st_rdev),
		.dev_minor = minor(found->st.st_rdev),
	};
}

/* A file that shrinks while it is sent cuts the answer: zeros would pass for its content. */
static int
pack_data(struct pack *pack, int fd, int64_t size)
{
	int64_t left = size;

	while (left > 0) {
		size_t room = PACK_OUT - pack->len;
		ssize_t n = read(fd, pack->out + pack->len, (int64_t)room < left ? room : (size_t)left);

		if (n <= 0)
			return PACK_STOPPED;
		pack->len += (size_t)n;
		left -= n;
		if (pack->len == PACK_OUT && pack_flush(pack) != 0)
			return PACK_STOPPED;
	}
	return pack_pad(pack, tar_padding(size));
}

/* A small file is read first: it may change until its size is told. */
static int
pack_small(struct pack *pack, int fd, struct tar_entry *entry)
{
	static char whole[PACK_WHOLE];
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, whole + len, PACK_WHOLE - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return PACK_STOPPED;
	entry->size = (int64_t)len;
	if (pack_header(pack, entry) != 0 || pack_put(pack, whole, len) != 0)
		return PACK_STOPPED;
	return pack_pad(pack, tar_padding(entry->size));
}

static int
pack_file(struct pack *pack, const struct walk_entry *found)
{
	struct tar_entry entry = pack_entry(found, TAR_FILE);
	AUTO_FD fd = openat(found->dir_fd, found->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || (errno == EACCES && pack->call->skip) ? 0 : PACK_STOPPED;
	if (fstat(fd, &st) < 0)
		return PACK_STOPPED;
	if (!S_ISREG(st.st_mode))
		return 0; /* something else took its place */
	if (st.st_size < PACK_WHOLE)
		return pack_small(pack, fd, &entry);
	entry.size = st.st_size;
	return pack_header(pack, &entry) != 0 ? PACK_STOPPED : pack_data(pack, fd, entry.size);
}

static int
pack_symlink(struct pack *pack, const struct walk_entry *found)
{
	struct tar_entry entry = pack_entry(found, TAR_SYMLINK);
	char target[PATH_MAX];
	ssize_t len = readlinkat(found->dir_fd, found->name, target, sizeof target - 1);

	if (len < 0)
		return errno == ENOENT || errno == EINVAL ? 0 : PACK_STOPPED;
	target[len] = '\0';
	entry.link = target;
	return pack_header(pack, &entry);
}

static int
pack_other(struct pack *pack, const struct walk_entry *found)
{
	struct tar_entry entry = pack_entry(found, TAR_DIRECTORY);

	switch (found->st.st_mode & S_IFMT) {
	case S_IFDIR:
		break;
	case S_IFIFO:
		entry.type = TAR_FIFO;
		break;
	case S_IFCHR:
		entry.type = TAR_CHARACTER;
		break;
	case S_IFBLK:
		entry.type = TAR_BLOCK_DEVICE;
		break;
	default:
		return 0; /* a socket means nothing without who listens */
	}
	return pack_header(pack, &entry);
}

static int
pack_on_entry(const struct walk_entry *found, void *arg)
{
	struct pack *pack = arg;
	struct tar_entry link = pack_entry(found, TAR_HARD_LINK);
	const char *first = NULL;

	if (!S_ISDIR(found->st.st_mode) && !S_ISSOCK(found->st.st_mode) && found->st.st_nlink > 1)
		first = inode_names_meet(pack->inodes, found->st.st_dev, found->st.st_ino, found->path);
	if (first != NULL) {
		link.link = (char *)(uintptr_t)first;
		return pack_header(pack, &link);
	}
	if (S_ISREG(found->st.st_mode))
		return pack_file(pack, found);
	return S_ISLNK(found->st.st_mode) ? pack_symlink(pack, found) : pack_other(pack, found);
}

static int
pack_on_unreadable(const char *path, int errnum, void *arg)
{
	const struct pack *pack = arg;

	(void)path;
	return pack->call->skip && errnum == EACCES ? 0 : PACK_STOPPED;
}

static int
pack_open(const struct archive_call *call)
{
	return open(call->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
}

static void
pack_send(struct pack *pack)
{
	const struct walk_ops ops = { pack_on_entry, pack_on_unreadable, pack };
	struct helper_head head = { .status = 200, .content_type = "application/x-tar", .length = -1 };

	helper_begin(pack->side, &head);
	if (pack->call->head) {
		helper_end(pack->side);
		return;
	}
	pack->inodes = inode_names_create();
	if (walk_tree(pack_open(pack->call), &ops) == 0 && pack_pad(pack, (size_t)2 * TAR_BLOCK) == 0 &&
		pack_flush(pack) == 0)
		helper_end(pack->side);
	inode_names_free(pack->inodes);
	tar_text_fini(&pack->header);
}

void
archive_pack_run(struct helper_side *side, const void *arg)
{
	static struct pack pack;
	const struct walk_ops check = { check_entry, check_unreadable, &pack };
	int fd;

	pack.side = side;
	pack.call = arg;
	if (!file_path_check(side, pack.call->path))
		return;
	fd = pack_open(pack.call);
	if (fd < 0)
		helper_refuse_errno(side, errno, "%s", pack.call->path);
	else if (walk_tree(fd, &check) == 0)
		pack_send(&pack);
}
