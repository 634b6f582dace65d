/* unpack.c - one way for each type of entry. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/unpack.h"

#include "agent/tar/read.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/id.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { UNPACK_PIECE = 64 << 10, UNPACK_MAX_DIRS = 1 << 16 };

struct unpack_dir {
	char *name;
	struct timespec mtime;
	mode_t mode;
};

/* Where the entry goes. */
struct spot {
	const struct tar_entry *entry;
	const char *name; /* checked, from the root */
	const char *base;
	int dir_fd;
};

void
unpack_init(struct unpack *unpack, int root_fd, const char *root, bool any_link)
{
	char id[ID_UUID_SIZE];

	*unpack = (struct unpack){ .entries = 0 };
	place_init(&unpack->place, root_fd, root, any_link);
	id_uuid4(id);
	snprintf(unpack->temporary, sizeof unpack->temporary, ".orchard-%s", id);
}

void
unpack_fini(struct unpack *unpack)
{
	for (size_t i = 0; i < unpack->dir_count; i++)
		free(unpack->dirs[i].name);
	free(unpack->dirs);
	place_fini(&unpack->place);
}

/* Of a way that could not be walked: one that leads out is no fault of a file system. */
static int
walk_failed(struct err *err)
{
	if (errno != EXDEV)
		return UNPACK_FAILED;
	return err_set(err, ERR_DENIED, "a link on the way leads out"), UNPACK_REFUSED;
}

static struct timespec
entry_mtime(const struct tar_entry *entry)
{
	return (struct timespec){ .tv_sec = entry->mtime_s, .tv_nsec = entry->mtime_ns };
}

/* --- the temporary file --- */

static void
temporary_announce(struct unpack *unpack, const char *parent)
{
	const char *root = strcmp(unpack->place.root, "/") == 0 ? "" : unpack->place.root;
	AUTO_FREE char *path = alloc_format(
		"%s/%s%s%s", root, parent, *parent != '\0' ? "/" : "", unpack->temporary);

	if (unpack->on_temporary != NULL)
		unpack->on_temporary(path, unpack->arg);
}

static int
temporary_create(struct unpack *unpack, int dir_fd)
{
	return openat(dir_fd, unpack->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* In the root, under one name for all files, or beside where it goes. *ret_dir_fd is where it lies. */
static int
temporary_open(struct unpack *unpack, int beside_fd, int *ret_dir_fd)
{
	int fd;

	if (!unpack->temporary_beside) {
		*ret_dir_fd = unpack->place.root_fd;
		if (!unpack->announced)
			temporary_announce(unpack, "");
		unpack->announced = true;
		fd = temporary_create(unpack, *ret_dir_fd);
		if (fd >= 0 || (errno != EACCES && errno != EROFS))
			return fd;
		unpack->temporary_beside = true;
	}
	*ret_dir_fd = beside_fd;
	temporary_announce(unpack, unpack->place.parent);
	return temporary_create(unpack, beside_fd);
}

static void
file_attributes(const struct unpack *unpack, const struct tar_entry *entry, int fd)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, entry_mtime(entry) };
	mode_t mode = entry->mode & 0777;

	/* Only as far as the user may: who may not give a file away keeps it. */
	if (unpack->owners && fchown(fd, (uid_t)entry->uid, (gid_t)entry->gid) == 0)
		mode = entry->mode & 07777;
	else if (unpack->place.parent_sets_gid)
		(void)!fchown(fd, (uid_t)-1, unpack->place.parent_gid);
	(void)!fchmod(fd, mode);
	(void)!futimens(fd, times);
}

/* --- data --- */

static int
data_span(struct tar_reader *reader, int fd, int64_t offset, int64_t len, struct err *err)
{
	static char piece[UNPACK_PIECE];

	if (lseek(fd, offset, SEEK_SET) < 0)
		return UNPACK_FAILED;
	while (len > 0) {
		ssize_t n = tar_reader_data(reader, piece, len < UNPACK_PIECE ? (size_t)len : UNPACK_PIECE, err);

		if (n <= 0)
			return UNPACK_CUT;
		if (file_write_all(fd, piece, (size_t)n) < 0)
			return UNPACK_FAILED;
		len -= n;
	}
	return UNPACK_DONE;
}

static int
data_write(const struct tar_entry *entry, struct tar_reader *reader, int fd, struct err *err)
{
	if (entry->spans == NULL)
		return data_span(reader, fd, 0, entry->size, err);
	for (size_t i = 0; i < entry->span_count; i++) {
		int rc = data_span(reader, fd, entry->spans[i].offset, entry->spans[i].len, err);

		if (rc != UNPACK_DONE)
			return rc;
	}
	return ftruncate(fd, entry->size) < 0 ? UNPACK_FAILED : UNPACK_DONE;
}

/* --- the types --- */

/* What stands in the way of something that can't replace it by itself. An empty directory goes, too. */
static int
spot_clear(const struct spot *spot)
{
	if (unlinkat(spot->dir_fd, spot->base, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	return unlinkat(spot->dir_fd, spot->base, AT_REMOVEDIR);
}

static int
file_name(struct unpack *unpack, const struct spot *spot, int from_fd)
{
	if (renameat(from_fd, unpack->temporary, spot->dir_fd, spot->base) == 0)
		return 0;
	if (errno != EISDIR || unlinkat(spot->dir_fd, spot->base, AT_REMOVEDIR) < 0)
		return -1;
	return renameat(from_fd, unpack->temporary, spot->dir_fd, spot->base);
}

/* A mount below the root: rename() can't come from there, and the data is written already. */
static int
file_copy_beside(struct unpack *unpack, const struct spot *spot, int fd, int from_fd)
{
	static char piece[UNPACK_PIECE];
	char proc[64];
	AUTO_FD from = -1;
	AUTO_FD to = -1;
	ssize_t n;

	snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
	from = open(proc, O_RDONLY | O_CLOEXEC);
	unlinkat(from_fd, unpack->temporary, 0);
	unpack->temporary_beside = true;
	temporary_announce(unpack, unpack->place.parent);
	to = temporary_create(unpack, spot->dir_fd);
	if (from < 0 || to < 0)
		return -1;
	while ((n = read(from, piece, sizeof piece)) > 0)
		if (file_write_all(to, piece, (size_t)n) < 0)
			return -1;
	if (n < 0)
		return -1;
	file_attributes(unpack, spot->entry, to);
	return file_name(unpack, spot, spot->dir_fd);
}

static int
unpack_file(struct unpack *unpack, const struct spot *spot, struct tar_reader *reader, struct err *err)
{
	int from_fd, rc, errnum;
	AUTO_FD fd = temporary_open(unpack, spot->dir_fd, &from_fd);

	if (fd < 0)
		return UNPACK_FAILED;
	rc = data_write(spot->entry, reader, fd, err);
	if (rc == UNPACK_DONE) {
		file_attributes(unpack, spot->entry, fd);
		if (file_name(unpack, spot, from_fd) == 0) {
			unpack->bytes += spot->entry->size;
			return UNPACK_DONE;
		}
		if (errno == EXDEV && file_copy_beside(unpack, spot, fd, from_fd) == 0) {
			unpack->bytes += spot->entry->size;
			return UNPACK_DONE;
		}
		rc = UNPACK_FAILED;
	}
	errnum = errno;
	unlinkat(from_fd, unpack->temporary, 0);
	unlinkat(spot->dir_fd, unpack->temporary, 0);
	errno = errnum;
	return rc;
}

static int
unpack_directory(struct unpack *unpack, const struct spot *spot, struct err *err)
{
	const struct tar_entry *entry = spot->entry;
	struct unpack_dir *dir;
	AUTO_FD fd = -1;

	if (mkdirat(spot->dir_fd, spot->base, 0777) < 0) {
		fd = errno == EEXIST ? place_open_dir(&unpack->place, spot->name) : -1;
		if (fd < 0 &&
			(errno != ENOTDIR || spot_clear(spot) < 0 || mkdirat(spot->dir_fd, spot->base, 0777) < 0))
			return walk_failed(err);
	}
	if (unpack->owners)
		(void)!fchownat(
			spot->dir_fd, spot->base, (uid_t)entry->uid, (gid_t)entry->gid, AT_SYMLINK_NOFOLLOW);
	if (unpack->dir_count == UNPACK_MAX_DIRS)
		return UNPACK_DONE;
	if (unpack->dir_count == unpack->dir_size) {
		unpack->dir_size = unpack->dir_size > 0 ? unpack->dir_size * 2 : 64;
		unpack->dirs = alloc_resize(unpack->dirs, unpack->dir_size * sizeof *unpack->dirs);
	}
	dir = &unpack->dirs[unpack->dir_count++];
	*dir = (struct unpack_dir){ alloc_string(spot->name), entry_mtime(entry), entry->mode & 03777 };
	return UNPACK_DONE;
}

static int
unpack_symlink(struct unpack *unpack, const struct spot *spot, struct err *err)
{
	const struct tar_entry *entry = spot->entry;
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, entry_mtime(entry) };

	if (place_check_link(&unpack->place, entry->link, err) < 0)
		return UNPACK_REFUSED;
	if (spot_clear(spot) < 0 || symlinkat(entry->link, spot->dir_fd, spot->base) < 0)
		return UNPACK_FAILED;
	if (unpack->owners)
		(void)!fchownat(
			spot->dir_fd, spot->base, (uid_t)entry->uid, (gid_t)entry->gid, AT_SYMLINK_NOFOLLOW);
	(void)!utimensat(spot->dir_fd, spot->base, times, AT_SYMLINK_NOFOLLOW);
	return UNPACK_DONE;
}

/* A link that stays inside from where it is may lead out from where its second name is. */
static int
check_linked(const struct unpack *unpack, int dir_fd, const char *base, struct err *err)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(dir_fd, base, target, sizeof target - 1);

	if (len < 0)
		return errno == EINVAL ? UNPACK_DONE : UNPACK_FAILED;
	target[len] = '\0';
	return place_check_link(&unpack->place, target, err) < 0 ? UNPACK_REFUSED : UNPACK_DONE;
}

/* To a file that the archive, or the directory, has already. */
static int
unpack_hard_link(struct unpack *unpack, const struct spot *spot, struct err *err)
{
	AUTO_FREE char *target = place_name(spot->entry->link, err);
	AUTO_FREE char *parent = NULL;
	struct stat from, to;
	AUTO_FD fd = -1;
	char *slash;
	int rc;

	if (target == NULL)
		return err_set(err, ERR_DENIED, "it is a hard link that leads out, to %.200s", spot->entry->link),
		       UNPACK_REFUSED;
	slash = strrchr(target, '/');
	parent = alloc_format("%.*s", slash != NULL ? (int)(slash - target) : 0, target);
	fd = place_open_dir(&unpack->place, parent);
	slash = slash != NULL ? slash + 1 : target;
	if (fd < 0)
		return walk_failed(err);
	if (fstatat(fd, slash, &from, AT_SYMLINK_NOFOLLOW) < 0)
		return UNPACK_FAILED;
	if (fstatat(spot->dir_fd, spot->base, &to, AT_SYMLINK_NOFOLLOW) == 0 && to.st_ino == from.st_ino &&
		to.st_dev == from.st_dev)
		return UNPACK_DONE;
	rc = check_linked(unpack, fd, slash, err);
	if (rc != UNPACK_DONE)
		return rc;
	if (spot_clear(spot) < 0 || linkat(fd, slash, spot->dir_fd, spot->base, 0) < 0)
		return UNPACK_FAILED;
	return UNPACK_DONE;
}

/* Devices are not for everybody: without them the rest is still of use. */
static int
unpack_special(struct unpack *unpack, const struct spot *spot)
{
	const struct tar_entry *entry = spot->entry;
	mode_t kind = entry->type == TAR_FIFO ? S_IFIFO : entry->type == TAR_CHARACTER ? S_IFCHR : S_IFBLK;
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, entry_mtime(entry) };

	if (spot_clear(spot) < 0)
		return UNPACK_FAILED;
	if (mknodat(spot->dir_fd, spot->base, kind | 0600, makedev(entry->dev_major, entry->dev_minor)) < 0) {
		if (entry->type == TAR_FIFO || errno != EPERM)
			return UNPACK_FAILED;
		unpack->skipped++;
		return UNPACK_DONE;
	}
	if (unpack->owners)
		(void)!fchownat(
			spot->dir_fd, spot->base, (uid_t)entry->uid, (gid_t)entry->gid, AT_SYMLINK_NOFOLLOW);
	(void)!fchmodat(spot->dir_fd, spot->base, entry->mode & 0777, 0);
	(void)!utimensat(spot->dir_fd, spot->base, times, AT_SYMLINK_NOFOLLOW);
	return UNPACK_DONE;
}

int
unpack_entry(struct unpack *unpack, const struct tar_entry *entry, struct tar_reader *reader, struct err *err)
{
	AUTO_FREE char *name = place_name(entry->path, err);
	struct spot spot = { .entry = entry, .name = name };
	int rc;

	if (name == NULL)
		return UNPACK_REFUSED;
	if (*name == '\0' && entry->type == TAR_DIRECTORY)
		return UNPACK_DONE; /* the root is what it is */
	if (*name == '\0')
		return err_set(err, ERR_INVALID, "its name is empty"), UNPACK_REFUSED;
	spot.dir_fd = place_open_parent(&unpack->place, name, &spot.base);
	if (spot.dir_fd < 0)
		return walk_failed(err);
	if (entry->type == TAR_FILE)
		rc = unpack_file(unpack, &spot, reader, err);
	else if (entry->type == TAR_DIRECTORY)
		rc = unpack_directory(unpack, &spot, err);
	else if (entry->type == TAR_SYMLINK)
		rc = unpack_symlink(unpack, &spot, err);
	else if (entry->type == TAR_HARD_LINK)
		rc = unpack_hard_link(unpack, &spot, err);
	else
		rc = unpack_special(unpack, &spot);
	unpack->entries += rc == UNPACK_DONE;
	return rc;
}

/* From the last to the first: what is inside comes before what it is in. */
void
unpack_settle(struct unpack *unpack)
{
	for (size_t i = unpack->dir_count; i-- > 0;) {
		const struct unpack_dir *dir = &unpack->dirs[i];
		struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, dir->mtime };
		AUTO_FD fd = place_open_dir(&unpack->place, dir->name);
		char proc[64];

		if (fd < 0)
			continue;
		snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
		(void)!utimensat(AT_FDCWD, proc, times, 0);
		(void)!chmod(proc, unpack->owners ? dir->mode : dir->mode & 01777);
	}
}
