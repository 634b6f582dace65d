/*
 * upload.c - from here to a sandbox.
 *
 * The server keeps a body that was cut out of sight, so what broke is sent again from its beginning, as long as it can be
 * read again; stdin can't.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/copy.h"

#include "base/alloc.h"
#include "base/err.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/copy/links.h"
#include "orchardctl/copy/pack.h"
#include "orchardctl/copy/place.h"
#include "orchardctl/copy/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATIENCE_S 86400.0 /* for who writes into our stdin */

struct upload {
	const struct copy *copy;
	const char *source; /* for people */
	int fd; /* a file or stdin; -1: a directory */
	const char *directory;
	struct pack *pack;
	int64_t sent;
	struct err err; /* why reading failed */
	struct progress progress;
};

static int
read_some(struct upload *upload, void *buf, size_t size, size_t *ret_len)
{
	ssize_t n;

	if (upload->fd < 0)
		return pack_read(upload->pack, buf, size, ret_len, &upload->err);
	n = stream_read(upload->copy->ctl, upload->fd, buf, size);
	if (n < 0)
		return err_set_errno(&upload->err, errno, "%s", upload->source);
	*ret_len = (size_t)n;
	return 0;
}

static size_t
on_read(void *buf, size_t size, void *arg)
{
	struct upload *upload = arg;
	size_t len;

	if (read_some(upload, buf, size, &len) != 0)
		return CLIENT_READ_FAILED;
	upload->sent += (int64_t)len;
	progress_at(&upload->progress, upload->sent);
	return len;
}

/* To the beginning, before each try. */
static int
rewind_source(struct upload *upload, struct err *err)
{
	upload->sent = 0;
	upload->err.code = ERR_NONE;
	if (upload->fd < 0) {
		pack_close(upload->pack);
		upload->pack = NULL;
		return pack_open(upload->directory, &upload->pack, err);
	}
	if (upload->fd != STDIN_FILENO && lseek(upload->fd, 0, SEEK_SET) < 0)
		return err_set_errno(err, errno, "%s", upload->source);
	return 0;
}

static int
put(struct upload *upload, const char *path, int64_t len, struct err *err)
{
	struct client *client = upload->copy->ctl->client;
	bool again = upload->fd != STDIN_FILENO;
	struct retry retry;

	retry_start(&retry, upload->copy->ctl->retry_seconds);
	for (;;) {
		struct request request = { .method = "PUT",
			.path = path,
			.read = on_read,
			.read_len = len,
			.arg = upload,
			.silence_s = again ? 0 : PATIENCE_S };
		AUTO_ANSWER answer = { 0 };
		int64_t pause;

		if (rewind_source(upload, err) != 0)
			return -1;
		if (client_call(client, &request, &answer, err) == 0)
			return 0;
		if (upload->err.code != ERR_NONE) {
			*err = upload->err;
			return -1;
		}
		if (!again || (err->code != ERR_UNAVAILABLE && err->code != ERR_BUSY))
			return -1;
		pause = retry_next(&retry, answer.retry_after);
		if (pause < 0)
			return -1;
		ctl_note(upload->copy->ctl, "%s\ntrying again", err->msg);
		if (!client_pause(client, pause))
			return err_set(err, ERR_STALE, "interrupted");
	}
}

static int
send_it(struct upload *upload, const char *path, int64_t len, int64_t about, struct err *err)
{
	int rc;

	progress_init(&upload->progress, upload->copy->ctl, upload->source, about);
	rc = put(upload, path, len, err);
	progress_end(&upload->progress, rc == 0);
	progress_fini(&upload->progress);
	pack_close(upload->pack);
	return rc;
}

/* Where in the sandbox a file or directory of this name goes; malloc'ed, NULL after an error. */
static char *
find_target(const char *source, const char *target, const struct remote *remote, struct err *err)
{
	AUTO_FREE char *name = NULL, *real = NULL;

	if (remote->kind != REMOTE_DIRECTORY && !place_wants_directory(target))
		return alloc_string(target);
	name = place_name(source);
	if (name == NULL) {
		real = realpath(source, NULL);
		name = real != NULL ? place_name(real) : NULL;
	}
	if (name == NULL) {
		err_set(err, ERR_INVALID, "%s has no name to have in %s; say what it shall be called there", source,
			target);
		return NULL;
	}
	return place_join(target, name);
}

static int
upload_file(struct upload *upload, const char *target, const struct stat *stat, const struct remote *remote,
	struct err *err)
{
	AUTO_FREE char *to = find_target(upload->source, target, remote, err), *path = NULL;
	bool regular = S_ISREG(stat->st_mode);
	char mode[8];

	if (to == NULL)
		return -1;
	path = remote_path(upload->copy, "files/raw", to);
	snprintf(mode, sizeof mode, "%04o", (unsigned)(stat->st_mode & 0777));
	if (regular && remote->kind != REMOTE_FILE)
		path_add(&path, "mode", mode);
	return send_it(upload, path, regular ? stat->st_size : -1, regular ? stat->st_size : -1, err);
}

static int
upload_directory(struct upload *upload, const char *target, const struct remote *remote, struct err *err)
{
	AUTO_FREE char *to = place_is_contents(upload->source) ? alloc_string(target)
							       : find_target(upload->source, target, remote, err);
	AUTO_FREE char *path = NULL;

	if (to == NULL || (!upload->copy->any_links && links_check(upload->source, to, err) < 0))
		return -1;
	path = remote_path(upload->copy, "archive", to);
	path_add(&path, "links", upload->copy->any_links ? "any" : NULL);
	upload->directory = upload->source;
	return send_it(upload, path, -1, pack_measure(upload->source), err);
}

static int
upload_stdin(struct upload *upload, const char *target, const struct remote *remote, struct err *err)
{
	bool unpack = remote->kind == REMOTE_DIRECTORY || place_wants_directory(target);
	AUTO_FREE char *path = remote_path(upload->copy, unpack ? "archive" : "files/raw", target);

	if (unpack)
		path_add(&path, "links", upload->copy->any_links ? "any" : NULL);
	upload->fd = STDIN_FILENO;
	upload->source = "stdin";
	return send_it(upload, path, -1, -1, err);
}

int
upload_run(const struct copy *copy, const struct place *from, const struct place *to, struct err *err)
{
	struct upload upload = { .copy = copy, .source = from->path, .fd = -1 };
	AUTO_FD fd = -1;
	struct remote remote;
	struct stat stat;

	if (!from->stream) {
		fd = open(from->path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || fstat(fd, &stat) != 0)
			return err_set(err, ERR_INVALID, "%s: %s", from->path, strerror(errno));
	}
	if (remote_look(copy, to->path, &remote, err) != 0)
		return -1;
	if (from->stream)
		return upload_stdin(&upload, to->path, &remote, err);
	if (S_ISDIR(stat.st_mode))
		return upload_directory(&upload, to->path, &remote, err);
	upload.fd = fd;
	return upload_file(&upload, to->path, &stat, &remote, err);
}
