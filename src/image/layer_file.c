/* layer_file.c - makes files as a tar describes them. */
/* SPDX-License-Identifier: MIT */
#include "image/layer_file.h"

#include "base/err.h"
#include "base/log.h"
#include "image/layer_tree.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum { XATTR_BYTES_MAX = 64 << 10, MODE_BITS = 07777 };

static int
owner(struct archive_entry *entry, uid_t *ret_uid, gid_t *ret_gid, struct err *err)
{
	la_int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);

	if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
		return err_set(
			err, ERR_INVALID, "an owner (%lld:%lld) is no valid id", (long long)uid, (long long)gid);
	*ret_uid = (uid_t)uid;
	*ret_gid = (gid_t)gid;
	return 0;
}

/*
 * Only attributes that mean something to programs inside. overlayfs takes orders
 * from trusted.overlay.*, so nothing of trusted comes from a layer.
 */
static bool
is_wanted(const char *name)
{
	return strncmp(name, "user.", 5) == 0 || strcmp(name, "security.capability") == 0;
}

static int
set_xattrs(int fd, struct archive_entry *entry, struct err *err)
{
	const char *name;
	const void *value;
	size_t size;

	archive_entry_xattr_reset(entry);
	while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
		if (name == NULL || !is_wanted(name) || size > XATTR_BYTES_MAX)
			continue;
		if (fsetxattr(fd, name, value, size, 0) == 0)
			continue;
		if (errno == ENOSPC || errno == EDQUOT || strcmp(name, "security.capability") == 0)
			return err_set_errno(err, errno, "extended attribute");
		log_debug("an extended attribute of a layer is left out: %s", strerror(errno));
	}
	return 0;
}

void
layer_file_times(struct archive_entry *entry, struct timespec ret_times[2])
{
	ret_times[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	ret_times[1] = ret_times[0];
	if (archive_entry_mtime_is_set(entry)) {
		ret_times[1].tv_sec = archive_entry_mtime(entry);
		ret_times[1].tv_nsec = archive_entry_mtime_nsec(entry);
	}
}

/* chown clears set-id bits and capabilities, so it comes first. */
int
layer_file_set(int fd, struct archive_entry *entry, struct err *err)
{
	uid_t uid;
	gid_t gid;

	if (owner(entry, &uid, &gid, err) != 0)
		return -1;
	if (fchown(fd, uid, gid) != 0)
		return err_set_errno(err, errno, "set the owner");
	if (fchmod(fd, archive_entry_perm(entry) & MODE_BITS) != 0)
		return err_set_errno(err, errno, "set the mode");
	return set_xattrs(fd, entry, err);
}

static int
write_at(int fd, const char *data, size_t len, off_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, data, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

/* Some writers leave out the padding of the last member; whether the blob is whole, its digest tells. */
static int
write_data(struct layer_tree *tree, int fd, struct archive *archive, int64_t size, struct err *err)
{
	const void *data;
	la_int64_t at;
	size_t len;
	int rc;

	while ((rc = archive_read_data_block(archive, &data, &len, &at)) != ARCHIVE_EOF) {
		tree->ended = rc == ARCHIVE_FATAL && size == 0;
		if (tree->ended)
			return 0;
		if (rc < ARCHIVE_WARN)
			return err_set(err, ERR_INVALID, "the layer is damaged (%s); copy the image again",
				archive_error_string(archive));
		if (layer_tree_charge(tree, (int64_t)len, err) != 0)
			return -1;
		if (write_at(fd, data, len, at) != 0)
			return err_set_errno(err, errno, "write");
		size -= (int64_t)len;
	}
	return 0;
}

int
layer_file_make(struct layer_tree *tree, int parent, const char *name, struct archive *archive,
	struct archive_entry *entry, struct err *err)
{
	AUTO_FD fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct timespec times[2];

	if (fd < 0)
		return err_set_errno(err, errno, "make file");
	if (write_data(tree, fd, archive, archive_entry_size(entry), err) != 0)
		return -1;
	if (ftruncate(fd, archive_entry_size(entry)) != 0) /* it may end with a hole */
		return err_set_errno(err, errno, "set the size");
	if (layer_file_set(fd, entry, err) != 0)
		return -1;
	layer_file_times(entry, times);
	(void)futimens(fd, times);
	return 0;
}

static int
finish_name(int parent, const char *name, struct archive_entry *entry, struct err *err)
{
	struct timespec times[2];
	uid_t uid;
	gid_t gid;

	if (owner(entry, &uid, &gid, err) != 0)
		return -1;
	if (fchownat(parent, name, uid, gid, AT_SYMLINK_NOFOLLOW) != 0)
		return err_set_errno(err, errno, "set the owner");
	layer_file_times(entry, times);
	(void)utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

int
layer_file_make_symlink(int parent, const char *name, struct archive_entry *entry, struct err *err)
{
	const char *target = archive_entry_symlink(entry);

	if (target == NULL || target[0] == '\0')
		return err_set(err, ERR_INVALID, "a symbolic link leads nowhere");
	if (symlinkat(target, parent, name) != 0)
		return err_set_errno(err, errno, "make symbolic link");
	return finish_name(parent, name, entry, err);
}

int
layer_file_make_fifo(int parent, const char *name, struct archive_entry *entry, struct err *err)
{
	if (mkfifoat(parent, name, archive_entry_perm(entry) & MODE_BITS) != 0)
		return err_set_errno(err, errno, "make fifo");
	return finish_name(parent, name, entry, err);
}
