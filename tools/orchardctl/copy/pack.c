/*
 * pack.c - libarchive walks and writes; the walk goes on only when somebody asks for bytes.
 *
 * Hard links stay links, links are not followed, sockets are left out (tar knows none), holes come as zeros.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/pack.h"

#include "base/alloc.h"
#include "base/err.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <ftw.h>
#include <stdbool.h>
#include <sys/stat.h>

enum { PIECE = 64 * 1024, BLOCK = 512 };

struct pack {
	struct archive *disk, *tar;
	struct archive_entry_linkresolver *links;
	size_t prefix; /* bytes of each name that are the directory's */
	int64_t left; /* bytes of the present file that are still to be read */
	char *name; /* of it, for people */
	char *out; /* made, and not asked for yet */
	size_t at, len, size;
	bool ended;
	char piece[PIECE];
};

static la_ssize_t
on_made(struct archive *archive, void *arg, const void *data, size_t len)
{
	struct pack *pack = arg;

	(void)archive;
	if (pack->at == pack->len)
		pack->at = pack->len = 0;
	if (pack->len + len > pack->size) {
		pack->size = 2 * (pack->len + len);
		pack->out = alloc_resize(pack->out, pack->size);
	}
	memcpy(pack->out + pack->len, data, len);
	pack->len += len;
	return (la_ssize_t)len;
}

static int
fail(struct archive *archive, const char *what, struct err *err)
{
	const char *words = archive_error_string(archive);

	return err_set(err, ERR_INVALID, "%s: %s", what, words != NULL ? words : "can't be read");
}

static int
pack_begin(struct pack *pack, const char *directory, struct err *err)
{
	pack->disk = must_alloc(archive_read_disk_new());
	pack->tar = must_alloc(archive_write_new());
	archive_read_disk_set_symlink_physical(pack->disk);
	archive_read_disk_set_behavior(
		pack->disk, ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_FFLAGS);
	archive_write_set_format_pax_restricted(pack->tar);
	archive_write_set_bytes_per_block(pack->tar, 0);
	pack->links = must_alloc(archive_entry_linkresolver_new());
	archive_entry_linkresolver_set_strategy(pack->links, archive_format(pack->tar));
	if (archive_write_open(pack->tar, pack, NULL, on_made, NULL) != ARCHIVE_OK)
		return fail(pack->tar, "tar", err);
	if (archive_read_disk_open(pack->disk, directory) != ARCHIVE_OK)
		return fail(pack->disk, directory, err);
	return 0;
}

int
pack_open(const char *directory, struct pack **ret_pack, struct err *err)
{
	struct pack *pack = alloc_zero(1, sizeof *pack);

	pack->prefix = strlen(directory);
	if (pack_begin(pack, directory, err) != 0) {
		pack_close(pack);
		return -1;
	}
	*ret_pack = pack;
	return 0;
}

void
pack_close(struct pack *pack)
{
	if (pack == NULL)
		return;
	archive_read_free(pack->disk);
	archive_write_free(pack->tar);
	if (pack->links != NULL)
		archive_entry_linkresolver_free(pack->links);
	free(pack->name);
	free(pack->out);
	free(pack);
}

/* "DIR/a/b" is "./a/b". */
static void
rename_entry(const struct pack *pack, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	AUTO_FREE char *inner = NULL;

	name += strlen(name) < pack->prefix ? strlen(name) : pack->prefix;
	name += strspn(name, "/");
	inner = alloc_format("./%s", name);
	archive_entry_set_pathname(entry, inner);
}

static int
write_head(struct pack *pack, struct archive_entry *entry, struct err *err)
{
	struct archive_entry *spare = NULL;

	free(pack->name);
	pack->name = alloc_string(archive_entry_pathname(entry));
	rename_entry(pack, entry);
	archive_entry_set_uname(entry, NULL);
	archive_entry_set_gname(entry, NULL);
	archive_entry_sparse_clear(entry);
	archive_entry_linkify(pack->links, &entry, &spare);
	if (archive_write_header(pack->tar, entry) < ARCHIVE_WARN)
		return fail(pack->tar, pack->name, err);
	pack->left = archive_entry_filetype(entry) == AE_IFREG ? archive_entry_size(entry) : 0;
	return 0;
}

static int
next_entry(struct pack *pack, struct err *err)
{
	struct archive_entry *entry;
	int rc = archive_read_next_header(pack->disk, &entry);

	if (rc == ARCHIVE_EOF) {
		pack->ended = true;
		return archive_write_close(pack->tar) == ARCHIVE_OK ? 0 : fail(pack->tar, "tar", err);
	}
	if (rc != ARCHIVE_OK)
		return fail(pack->disk, "directory", err);
	/* It fails for what can't be entered; the next header says so. */
	if (archive_read_disk_can_descend(pack->disk))
		archive_read_disk_descend(pack->disk);
	if (archive_entry_filetype(entry) == AE_IFSOCK)
		return 0;
	return write_head(pack, entry, err);
}

static int
next_data(struct pack *pack, struct err *err)
{
	size_t want = pack->left < PIECE ? (size_t)pack->left : PIECE;
	la_ssize_t n = archive_read_data(pack->disk, pack->piece, want);

	if (n < 0)
		return fail(pack->disk, pack->name, err);
	if (n == 0)
		return err_set(err, ERR_STALE, "%s: became shorter while it was read", pack->name);
	if (archive_write_data(pack->tar, pack->piece, (size_t)n) != n)
		return fail(pack->tar, pack->name, err);
	pack->left -= n;
	return 0;
}

int
pack_read(struct pack *pack, void *buf, size_t size, size_t *ret_len, struct err *err)
{
	size_t len;

	while (pack->at == pack->len && !pack->ended) {
		int rc = pack->left > 0 ? next_data(pack, err) : next_entry(pack, err);

		if (rc != 0)
			return -1;
	}
	len = pack->len - pack->at;
	len = len < size ? len : size;
	memcpy(buf, pack->out + pack->at, len);
	pack->at += len;
	*ret_len = len;
	return 0;
}

/* nftw() passes nothing along. */
static _Thread_local int64_t measured;

static int
measure_one(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)path;
	(void)ftw;
	measured += BLOCK;
	if (type == FTW_F && S_ISREG(stat->st_mode))
		measured += (stat->st_size + BLOCK - 1) / BLOCK * BLOCK;
	return 0;
}

int64_t
pack_measure(const char *directory)
{
	measured = 2 * BLOCK;
	nftw(directory, measure_one, 32, FTW_PHYS);
	return measured;
}
