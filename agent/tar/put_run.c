/* put_run.c - a request's body below a directory. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/archive_call.h"
#include "agent/tar/read.h"
#include "agent/tar/source.h"
#include "agent/tar/unpack.h"

#include "agent/files/file_call.h"
#include "agent/files/helper_side.h"
#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>

enum { PUT_MAX_FILL = 16 << 20 };

struct put_archive {
	struct helper_side *side;
	const struct archive_call *call;
	struct body_source *source;
	struct tar_reader reader;
	struct unpack unpack;
};

static ssize_t
put_read(void *side, void *buffer, size_t size)
{
	return helper_read(side, buffer, size);
}

static void
put_on_temporary(const char *path, void *side)
{
	helper_leave_nothing(side, path);
}

static void
put_answer(struct put_archive *put)
{
	struct json_object *body = json_object_new_object();

	json_object_object_add(body, "success", json_object_new_boolean(true));
	json_object_object_add(body, "path", json_object_new_string(put->call->path));
	json_object_object_add(body, "entries", json_object_new_int64(put->unpack.entries));
	json_object_object_add(body, "bytes", json_object_new_int64(put->unpack.bytes));
	json_object_object_add(body, "skipped", json_object_new_int64(put->unpack.skipped));
	helper_json(put->side, 200, body);
}

/* Nobody is answered when the body was cut: nobody is there. */
static void
put_refuse_archive(struct put_archive *put, const struct err *err)
{
	const char *fault = body_source_fault(put->source), *other = body_source_other(put->source);

	if (other != NULL)
		helper_refuse(put->side, 400, "invalid", "the body is %s: send tar, or tar with gzip", other);
	else if (fault != NULL)
		helper_refuse(put->side, 400, "invalid", "%s; %lld entries were written", fault,
			(long long)put->unpack.entries);
	else if (err != NULL && err->code != ERR_UNAVAILABLE)
		helper_refuse(put->side, 400, "invalid", "%s; %lld entries were written", err->msg,
			(long long)put->unpack.entries);
}

static int
put_entries(struct put_archive *put)
{
	const struct tar_entry *entry;
	struct err err;
	int rc;

	while ((rc = tar_reader_next(&put->reader, &entry, &err)) > 0) {
		rc = unpack_entry(&put->unpack, entry, &put->reader, &err);
		if (rc == UNPACK_FAILED)
			helper_refuse_errno(put->side, errno, "%.200s, after %lld entries", entry->path,
				(long long)put->unpack.entries);
		else if (rc == UNPACK_REFUSED)
			helper_refuse(put->side, 400, "invalid", "%.200s: %s; %lld entries were written",
				entry->path, err.msg, (long long)put->unpack.entries);
		else if (rc == UNPACK_CUT)
			put_refuse_archive(put, &err);
		if (rc != UNPACK_DONE)
			return -1;
	}
	if (rc < 0)
		put_refuse_archive(put, &err);
	return rc;
}

/*
 * Behind the end of an archive stands what fills its last block, and gzip's checksum. A body is taken whole, but
 * what it makes of more than that is nobody's.
 */
static int
put_rest(struct put_archive *put)
{
	static char nowhere[32 << 10];
	size_t all = 0;
	ssize_t n = 0;

	while (all < PUT_MAX_FILL && (n = body_source_read(put->source, nowhere, sizeof nowhere)) > 0)
		all += (size_t)n;
	if (n < 0 && body_source_fault(put->source) != NULL) {
		put_refuse_archive(put, NULL);
		return -1;
	}
	while ((n = helper_read(put->side, nowhere, sizeof nowhere)) > 0)
		;
	return (int)n;
}

static int
put_open_root(const struct archive_call *call)
{
	if (file_make_dirs(call->path, 0777) < 0)
		return -1;
	return open(call->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void
put_run(struct put_archive *put, int root_fd)
{
	struct tar_source plain = { .read = body_source_read };

	put->source = body_source_create(put_read, put->side);
	plain.arg = put->source;
	tar_reader_init(&put->reader, &plain);
	unpack_init(&put->unpack, root_fd, put->call->path, put->call->any_link);
	put->unpack.owners = put->call->owners;
	put->unpack.on_temporary = put_on_temporary;
	put->unpack.arg = put->side;
	if (put_entries(put) == 0) {
		unpack_settle(&put->unpack);
		if (put->reader.entries == 0 && put->reader.is_empty)
			helper_refuse(put->side, 400, "invalid", "the body is empty: that is no archive");
		else if (put_rest(put) == 0)
			put_answer(put);
	}
	unpack_fini(&put->unpack);
	tar_reader_fini(&put->reader);
	body_source_free(put->source);
}

void
archive_unpack_run(struct helper_side *side, const void *arg)
{
	static struct put_archive put;
	AUTO_FD root_fd = -1;

	put.side = side;
	put.call = arg;
	if (!file_path_check(side, put.call->path))
		return;
	root_fd = put_open_root(put.call);
	if (root_fd < 0)
		helper_refuse_errno(side, errno, "%s", put.call->path);
	else
		put_run(&put, root_fd);
}
