/* box_dir.c - directories of sandboxes: made, named, thrown away. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/box_dir.h"

#include "base/err.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

int
box_dir_make(const struct site *site, const char *name, int *ret_fd, struct err *err)
{
	if (mkdirat(site->sandboxes_fd, name, 0700) != 0)
		return err_set_errno(err, errno, "make the directory of sandbox %s", name);
	return box_dir_open(site, name, ret_fd, err);
}

int
box_dir_open(const struct site *site, const char *name, int *ret_fd, struct err *err)
{
	*ret_fd = openat(site->sandboxes_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_set_errno(err, errno, "open the directory of sandbox %s", name);
	return 0;
}

int
box_dir_fill(int box_fd, uint32_t first_id, struct err *err)
{
	static const struct {
		const char *name;
		mode_t mode;
	} dirs[] = { { "upper", 0755 }, { "work", 0755 }, { "spool", 0700 } };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		if (mkdirat(box_fd, dirs[i].name, dirs[i].mode) != 0 ||
			fchownat(box_fd, dirs[i].name, first_id, first_id, AT_SYMLINK_NOFOLLOW) != 0)
			return err_set_errno(err, errno, "make %s/ of a sandbox", dirs[i].name);
	}
	return 0;
}

int
box_dir_rename(const struct site *site, const char *name, const char *to, struct err *err)
{
	if (renameat2(site->sandboxes_fd, name, site->sandboxes_fd, to, RENAME_NOREPLACE) != 0)
		return err_set_errno(err, errno, "name the directory of sandbox %s", to);
	return 0;
}

int
box_dir_open_spool(int box_fd, int *ret_fd, struct err *err)
{
	*ret_fd = openat(box_fd, "spool", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*ret_fd < 0)
		return err_set_errno(err, errno, "open the spool of a sandbox");
	return 0;
}

int
box_dir_discard(const struct site *site, const char *name, const char *uid, struct err *err)
{
	char other[2 * ID_UUID_SIZE], uuid[ID_UUID_SIZE];

	if (renameat(site->sandboxes_fd, name, site->trash_fd, uid) == 0 || errno == ENOENT)
		return 0;
	if (errno == EEXIST || errno == ENOTEMPTY) { /* an earlier life of that name is still being deleted */
		id_uuid4(uuid);
		snprintf(other, sizeof other, "%.36s.%s", uid, uuid);
		if (renameat(site->sandboxes_fd, name, site->trash_fd, other) == 0)
			return 0;
	}
	return err_set_errno(err, errno, "move sandbox %s into the trash", name);
}

void
box_dir_sweep(const struct site *site, const char *uid)
{
	struct err err;

	if (file_remove_tree_at(site->trash_fd, uid, &err) != 0)
		log_debug("of a sandbox made ahead: %s", err.msg); /* a later sweep tries again */
}
