/*
 * download.c - from a sandbox to here.
 *
 * A file whose connection breaks goes on at the byte where it was, if it is still the same (its ETag); else it begins anew.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/download.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/copy/copy.h"
#include "orchardctl/copy/place.h"
#include "orchardctl/copy/progress.h"
#include "orchardctl/copy/sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum { STATUS_PARTIAL = 206 };

struct download {
	const struct copy *copy;
	struct sink sink;
	const char *target; /* for people */
	struct answer answer;
	char *etag; /* of what has come; NULL: it has none */
	int64_t got;
	bool begun; /* this try */
	struct err err; /* why writing failed */
	struct progress progress;
};

/* The first bytes of a try: do they go on, or begin anew? */
static int
begin(struct download *download)
{
	download->begun = true;
	if (download->got > 0 && download->answer.status != STATUS_PARTIAL) {
		if (!sink_is_file(&download->sink))
			return err_set(&download->err, ERR_STALE, "the file changed while it was read");
		if (ftruncate(download->sink.fd, 0) != 0 || lseek(download->sink.fd, 0, SEEK_SET) != 0)
			return err_set_errno(&download->err, errno, "%s", download->target);
		download->got = 0;
	}
	if (download->got == 0) {
		free(download->etag);
		download->etag = answer_header(&download->answer, "ETag");
	}
	return 0;
}

static int
on_body(const void *data, size_t len, void *arg)
{
	struct download *download = arg;
	int rc;

	if (!download->begun && begin(download) != 0)
		return -1;
	rc = sink_is_file(&download->sink) ? file_write_all(download->sink.fd, data, len)
					   : stream_write(download->copy->ctl, download->sink.fd, data, len);
	/* Whoever read our stdout has enough; that is no failure to speak of. */
	if (rc != 0 && errno == EPIPE)
		return err_set(&download->err, ERR_CLOSED, "the pipe is closed");
	if (rc != 0)
		return err_set_errno(&download->err, errno, "%s", download->target);
	download->got += (int64_t)len;
	progress_at(&download->progress, download->got);
	return 0;
}

/* One try, from where it is. */
static int
fetch(struct download *download, const char *path, struct err *err)
{
	AUTO_FREE char *range = NULL, *same = NULL;
	const char *headers[3] = { NULL };
	struct request request = { .path = path, .headers = headers, .on_body = on_body, .arg = download };

	if (download->got > 0 && download->etag != NULL) {
		headers[0] = range = alloc_format("Range: bytes=%" PRId64 "-", download->got);
		headers[1] = same = alloc_format("If-Range: %s", download->etag);
	}
	download->begun = false;
	answer_fini(&download->answer);
	if (client_call(download->copy->ctl->client, &request, &download->answer, err) == 0)
		return 0;
	if (download->err.code != ERR_NONE)
		*err = download->err;
	return -1;
}

static int
fetch_all(struct download *download, const char *path, struct err *err)
{
	const struct ctl *ctl = download->copy->ctl;
	struct retry retry;
	int64_t before, pause;

	retry_start(&retry, ctl->retry_seconds);
	for (;;) {
		before = download->got;
		if (fetch(download, path, err) == 0)
			return 0;
		if (err->code != ERR_UNAVAILABLE || download->got == 0 || download->etag == NULL)
			return -1;
		if (download->got > before)
			retry_start(&retry, ctl->retry_seconds);
		pause = retry_next(&retry, 0);
		if (pause < 0)
			return -1;
		ctl_note(ctl, "%s\ntrying again", err->msg);
		if (!client_pause(ctl->client, pause))
			return err_set(err, ERR_STALE, "interrupted");
	}
}

/* The sink is closed in any case. */
static int
download_bytes(struct download *download, const char *path, const char *name, int64_t total, struct err *err)
{
	int rc;

	progress_init(&download->progress, download->copy->ctl, name, total);
	/* On a terminal the bytes themselves are what is to be seen. */
	if (download->sink.fd == STDOUT_FILENO && isatty(STDOUT_FILENO))
		download->progress.shown = false;
	rc = fetch_all(download, path, err);
	if (rc == 0)
		rc = sink_keep(&download->sink, err);
	progress_end(&download->progress, rc == 0);
	progress_fini(&download->progress);
	sink_close(&download->sink);
	answer_fini(&download->answer);
	free(download->etag);
	return rc;
}

static bool
is_directory(const char *path)
{
	struct stat stat_;

	return stat(path, &stat_) == 0 && S_ISDIR(stat_.st_mode);
}

/* Where here something of the sandbox goes; malloc'ed, NULL after an error. */
static char *
find_target(const char *from, const char *to, struct err *err)
{
	AUTO_FREE char *name = NULL;

	if (!is_directory(to)) {
		if (place_wants_directory(to)) {
			err_set(err, ERR_INVALID, "there is no directory %s here", to);
			return NULL;
		}
		return alloc_string(to);
	}
	name = place_name(from);
	if (name == NULL) {
		err_set(err, ERR_INVALID, "%s has no name to have in %s; say what it shall be called", from, to);
		return NULL;
	}
	return place_join(to, name);
}

char *
download_archive_path(const struct copy *copy, const char *from)
{
	char *path = remote_path(copy, "archive", from);

	path_add(&path, "unreadable", copy->skip_unreadable ? "skip" : NULL);
	return path;
}

static int
to_stdout(const struct copy *copy, const char *from, const struct remote *remote, struct err *err)
{
	struct download download = { .copy = copy, .target = "stdout" };
	bool tree = remote->kind == REMOTE_DIRECTORY;
	AUTO_FREE char *path = tree ? download_archive_path(copy, from) : remote_path(copy, "files/raw", from);

	if (isatty(STDOUT_FILENO) && tree)
		return err_set(
			err, ERR_INVALID, "a directory comes as tar, which is not for a terminal; add '| tar tv'");
	sink_open_stdout(&download.sink);
	return download_bytes(&download, path, from, tree ? -1 : remote->size, err);
}

int
download_run(const struct copy *copy, const struct place *from, const struct place *to, struct err *err)
{
	struct download download = { .copy = copy };
	AUTO_FREE char *target = NULL, *path = NULL;
	struct remote remote;

	if (remote_look(copy, from->path, &remote, err) != 0)
		return -1;
	if (remote.kind == REMOTE_NOTHING)
		return err_set(err, ERR_NOT_FOUND, "there is no %s in sandbox %s", from->path, copy->sandbox);
	if (to->stream)
		return to_stdout(copy, from->path, &remote, err);
	if (remote.kind == REMOTE_DIRECTORY && place_is_contents(from->path))
		return download_tree(copy, from->path, to->path, err);
	target = find_target(from->path, to->path, err);
	if (target == NULL)
		return -1;
	if (remote.kind == REMOTE_DIRECTORY)
		return download_tree(copy, from->path, target, err);
	if (is_directory(target))
		return err_set(err, ERR_INVALID, "%s is a directory here, and a file in the sandbox", target);
	if (sink_open(&download.sink, target, remote.mode, err) != 0)
		return -1;
	download.target = target;
	path = remote_path(copy, "files/raw", from->path);
	return download_bytes(&download, path, from->path, remote.size, err);
}
