/* unpack.c - libarchive reads and writes; what it may write is decided here. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/unpack.h"

#include "base/err.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>

enum {
	PERMISSIONS = 0777,
	FLAGS = ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
		ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS
};

bool
unpack_is_inside(const char *name)
{
	if (name[0] == '/')
		return false;
	while (*name != '\0') {
		size_t len = strcspn(name, "/");

		if (len == 2 && name[0] == '.' && name[1] == '.')
			return false;
		name += len;
		name += strspn(name, "/");
	}
	return true;
}

static la_ssize_t
on_read(struct archive *archive, void *arg, const void **ret_data)
{
	struct unpack *unpack = arg;

	(void)archive;
	return unpack->read(ret_data, unpack->arg);
}

static int
fail(struct archive *archive, const char *name, struct err *err)
{
	const char *words = archive_error_string(archive);

	return err_set(err, ERR_INVALID, "%s: %s", name, words != NULL ? words : "can't be unpacked");
}

static bool
is_directory_itself(const char *name)
{
	while (name[0] == '.' && (name[1] == '/' || name[1] == '\0'))
		name += 1 + strspn(name + 1, "/");
	return *name == '\0';
}

static bool
is_wanted(struct archive_entry *entry)
{
	mode_t type = archive_entry_filetype(entry);

	return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK || archive_entry_hardlink(entry) != NULL;
}

static int
copy_data(struct archive *tar, struct archive *disk, const char *name, struct err *err)
{
	const void *data;
	la_int64_t offset;
	size_t len;
	int rc;

	while ((rc = archive_read_data_block(tar, &data, &len, &offset)) == ARCHIVE_OK)
		if (archive_write_data_block(disk, data, len, offset) < ARCHIVE_OK)
			return fail(disk, name, err);
	return rc == ARCHIVE_EOF ? 0 : fail(tar, name, err);
}

static int
take_entry(struct unpack *unpack, struct archive *tar, struct archive *disk, struct archive_entry *entry,
	struct err *err)
{
	const char *name = archive_entry_pathname(entry), *target = archive_entry_hardlink(entry);

	if (name == NULL || !unpack_is_inside(name) || (target != NULL && !unpack_is_inside(target)))
		return err_set(err, ERR_INVALID, "the sandbox sent a name that leads out of the directory: %.200s",
			name != NULL ? name : "(none)");
	if (is_directory_itself(name)) {
		unpack->mode = archive_entry_perm(entry) & PERMISSIONS;
		return 0;
	}
	if (!is_wanted(entry)) {
		unpack->skipped++;
		return 0;
	}
	archive_entry_set_perm(entry, archive_entry_perm(entry) & PERMISSIONS);
	if (archive_write_header(disk, entry) < ARCHIVE_WARN)
		return fail(disk, name, err);
	if (target == NULL && archive_entry_size(entry) > 0 && copy_data(tar, disk, name, err) != 0)
		return -1;
	return archive_write_finish_entry(disk) >= ARCHIVE_WARN ? 0 : fail(disk, name, err);
}

static int
take_all(struct unpack *unpack, struct archive *tar, struct archive *disk, struct err *err)
{
	struct archive_entry *entry;
	int rc;

	while ((rc = archive_read_next_header(tar, &entry)) == ARCHIVE_OK || rc == ARCHIVE_WARN)
		if (take_entry(unpack, tar, disk, entry, err) != 0)
			return -1;
	if (rc != ARCHIVE_EOF)
		return fail(tar, "the archive", err);
	/* Times and modes of directories come last. */
	return archive_write_close(disk) >= ARCHIVE_WARN ? 0 : fail(disk, "directory", err);
}

static int
run_inside(struct unpack *unpack, struct err *err)
{
	struct archive *tar = must_alloc(archive_read_new()), *disk = must_alloc(archive_write_disk_new());
	int rc;

	archive_read_support_format_tar(tar);
	archive_write_disk_set_options(disk, FLAGS);
	rc = archive_read_open(tar, unpack, NULL, on_read, NULL) == ARCHIVE_OK ? take_all(unpack, tar, disk, err)
									       : fail(tar, "the archive", err);
	archive_read_free(tar);
	archive_write_free(disk);
	return rc;
}

int
unpack_run(struct unpack *unpack, int dirfd, struct err *err)
{
	AUTO_FD before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (before < 0 || fchdir(dirfd) != 0)
		return err_set_errno(err, errno, "the directory can't be entered");
	rc = run_inside(unpack, err);
	if (fchdir(before) != 0 && rc == 0)
		rc = err_set_errno(err, errno, "no way back to the working directory");
	return rc;
}
