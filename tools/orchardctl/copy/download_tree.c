/*
 * download_tree.c - a directory of a sandbox, unpacked while it comes.
 *
 * libarchive asks for bytes, and the request goes on only then, so a slow disk slows the sandbox's side. Nothing has its
 * place before all has come: a new directory gets its name then, and what goes into an old one is moved there.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/download.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/command.h"
#include "orchardctl/copy/copy.h"
#include "orchardctl/copy/merge.h"
#include "orchardctl/copy/place.h"
#include "orchardctl/copy/progress.h"
#include "orchardctl/copy/sink.h"
#include "orchardctl/copy/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { STEP_MS = 60000 };

struct tree {
	const struct copy *copy;
	struct transfer *transfer; /* NULL: it has ended, with rc and err */
	struct answer answer;
	int rc;
	struct err err;
	char *bytes; /* come, and not unpacked yet */
	size_t len, size;
	bool given; /* they were, and are to be forgotten */
	int64_t got;
	struct progress progress;
};

static int
on_body(const void *data, size_t len, void *arg)
{
	struct tree *tree = arg;

	if (tree->len + len > tree->size) {
		tree->size = 2 * (tree->len + len);
		tree->bytes = alloc_resize(tree->bytes, tree->size);
	}
	memcpy(tree->bytes + tree->len, data, len);
	tree->len += len;
	tree->got += (int64_t)len;
	progress_at(&tree->progress, tree->got);
	return 0;
}

static void
end_request(struct tree *tree)
{
	if (tree->transfer != NULL)
		tree->rc = client_end(STEAL_PTR(tree->transfer), NULL, &tree->err);
}

static ssize_t
on_read(const void **ret_data, void *arg)
{
	struct tree *tree = arg;
	struct ctl *ctl = tree->copy->ctl;

	if (tree->given)
		tree->len = 0;
	tree->given = false;
	while (tree->len == 0 && tree->transfer != NULL) {
		client_step(ctl->client, NULL, 0, STEP_MS);
		if (ctl->signals->first != 0 || transfer_is_done(tree->transfer))
			end_request(tree);
	}
	if (tree->len == 0)
		return tree->rc == 0 ? 0 : -1;
	tree->given = true;
	*ret_data = tree->bytes;
	return (ssize_t)tree->len;
}

/* Into the directory; what the request says of itself counts more than what libarchive makes of it. */
static int
unpack_into(struct tree *tree, int dirfd, mode_t *ret_mode, struct err *err)
{
	struct unpack unpack = { .read = on_read, .arg = tree };
	int rc = unpack_run(&unpack, dirfd, err);
	const void *rest;

	/* The end of a tar is not the end of the answer. */
	while (rc == 0 && on_read(&rest, tree) > 0)
		;
	end_request(tree);
	if (tree->rc != 0 && tree->err.code != ERR_STALE) {
		*err = tree->err;
		rc = -1;
	}
	if (rc == 0 && tree->rc != 0) {
		*err = tree->err;
		return -1;
	}
	*ret_mode = unpack.mode;
	if (rc == 0 && unpack.skipped > 0)
		ctl_note(tree->copy->ctl, "%u devices, fifos and sockets were left out", unpack.skipped);
	return rc;
}

static int
keep_new(int fd, mode_t mode, const char *temporary, const char *to, struct err *err)
{
	mode_t mask = umask(0);

	umask(mask);
	if (mode == 0)
		mode = 0777 & ~mask;
	if (fchmod(fd, mode) != 0 || rename(temporary, to) != 0)
		return err_set_errno(err, errno, "%s can't be made", to);
	return 0;
}

static int
keep_old(int fd, mode_t mode, const char *temporary, const char *to, struct err *err)
{
	AUTO_FD target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)mode;
	(void)temporary;
	return target >= 0 ? merge_run(fd, target, err) : err_set(err, ERR_INVALID, "%s: %s", to, strerror(errno));
}

/* temporary: a template for mkdtemp(); keep gives what has come its place. */
static int
by_way_of(struct tree *tree, char *temporary, const char *to,
	int (*keep)(int fd, mode_t mode, const char *temporary, const char *to, struct err *err), struct err *err)
{
	AUTO_FD fd = -1;
	struct err ignored;
	mode_t mode = 0;
	int rc;

	if (mkdtemp(temporary) == NULL)
		return err_set(err, ERR_INVALID, "%s can't be written: %s", to, strerror(errno));
	fd = open(temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		rc = err_set_errno(err, errno, "%s can't be written", to);
	else
		rc = unpack_into(tree, fd, &mode, err);
	if (rc == 0)
		rc = keep(fd, mode, temporary, to, err);
	if (file_remove_tree_at(AT_FDCWD, temporary, &ignored) != 0)
		ctl_error("%s", ignored.msg);
	return rc;
}

/* "copy/." and "copy/" are "copy". */
static char *
plain_name(const char *to)
{
	size_t len = strlen(to);

	while (len > 1 && (to[len - 1] == '/' || (to[len - 1] == '.' && to[len - 2] == '/')))
		len--;
	return alloc_format("%.*s", (int)len, to);
}

int
download_tree(const struct copy *copy, const char *from, const char *to, struct err *err)
{
	AUTO_FREE char *path = download_archive_path(copy, from), *name = plain_name(to);
	AUTO_FREE char *inner = NULL, *beside = NULL;
	struct request request = { .path = path, .on_body = on_body };
	struct tree tree = { .copy = copy };
	struct stat stat_;
	int rc;

	request.arg = &tree;
	progress_init(&tree.progress, copy->ctl, from, -1);
	if (tree.progress.shown)
		progress_expect(&tree.progress, remote_sum(copy, from));
	tree.transfer = client_start(copy->ctl->client, &request, NULL, &tree.answer);
	if (lstat(name, &stat_) == 0)
		inner = place_join(name, ".orchardctl-XXXXXX");
	else
		beside = sink_temporary_name(name);
	rc = by_way_of(&tree, inner != NULL ? inner : beside, name, inner != NULL ? keep_old : keep_new, err);
	end_request(&tree);
	progress_end(&tree.progress, rc == 0);
	progress_fini(&tree.progress);
	answer_fini(&tree.answer);
	free(tree.bytes);
	return rc;
}
