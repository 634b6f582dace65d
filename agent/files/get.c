/*
 * get.c - a file, or one range of it.
 *
 * Its length is told before its bytes: what shrinks meanwhile is cut, and what grows is sent as it was. Files that
 * the kernel makes up (/proc, /sys) have no length to rely on; they are sent as they come, up to a bound.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/files/fault.h"
#include "agent/files/file_call.h"
#include "agent/files/helper_side.h"
#include "agent/files/range.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { GET_PIECE = 64 * 1024, GET_UNSIZED_MAX = 64 * 1024 * 1024 };

static const char get_type[] = "application/octet-stream";

struct get {
	struct helper_side *side;
	const struct file_call *call;
	int fd;
	struct stat st;
	char piece[GET_PIECE];
};

char *
file_etag(const struct stat *st)
{
	return alloc_format("\"%llx-%llx-%llx-%llx%09lx-%llx%09lx\"", (unsigned long long)st->st_dev,
		(unsigned long long)st->st_ino, (unsigned long long)st->st_size,
		(unsigned long long)st->st_mtim.tv_sec, (unsigned long)st->st_mtim.tv_nsec,
		(unsigned long long)st->st_ctim.tv_sec, (unsigned long)st->st_ctim.tv_nsec);
}

/* Opening a device may do something; a fifo would wait. */
static int
get_check(const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		return 0;
	errno = S_ISDIR(st->st_mode) ? EISDIR : ENXIO;
	return -1;
}

static int
get_open(struct get *get)
{
	if (stat(get->call->path, &get->st) < 0 || get_check(&get->st) < 0)
		return -1;
	get->fd = open(get->call->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (get->fd < 0 || fstat(get->fd, &get->st) < 0)
		return -1;
	return get_check(&get->st);
}

static bool
get_is_unsized(const struct get *get)
{
	struct statfs fs;

	if (fstatfs(get->fd, &fs) < 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case PROC_SUPER_MAGIC:
	case SYSFS_MAGIC:
	case CGROUP_SUPER_MAGIC:
	case CGROUP2_SUPER_MAGIC:
	case DEBUGFS_MAGIC:
	case TRACEFS_MAGIC:
	case SECURITYFS_MAGIC:
		return true;
	default:
		return false;
	}
}

static ssize_t
get_read(struct get *get, size_t size)
{
	ssize_t got;

	do {
		got = read(get->fd, get->piece, size);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* What the kernel makes up it may well refuse to make, with any error it likes. */
static void
get_refuse_unsized(struct get *get, int errnum)
{
	if (fault_of_errno(errnum)->status != 500)
		helper_refuse_errno(get->side, errnum, "%s", get->call->path);
	else
		helper_refuse(get->side, 400, "invalid", "%s: the kernel does not let it be read as a file: %s",
			get->call->path, strerror(errnum));
}

/* The first piece decides whether it can be read at all. */
static void
get_unsized(struct get *get)
{
	struct helper_head head = { .status = 200, .content_type = get_type, .length = -1 };
	ssize_t got = get_read(get, GET_PIECE);
	int64_t sent = 0;

	if (got < 0) {
		get_refuse_unsized(get, errno);
		return;
	}
	helper_begin(get->side, &head);
	for (; got > 0 && !get->call->head; got = get_read(get, GET_PIECE)) {
		sent += got;
		if (sent > GET_UNSIZED_MAX || helper_write(get->side, get->piece, (size_t)got) < 0)
			return;
	}
	if (got >= 0)
		helper_end(get->side);
}

static void
get_send(struct get *get, const struct range *range)
{
	int64_t left = get->call->head ? 0 : range->length;

	if (left > 0 && range->first > 0 && lseek(get->fd, range->first, SEEK_SET) < 0)
		return;
	posix_fadvise(get->fd, range->first, range->length, POSIX_FADV_SEQUENTIAL);
	while (left > 0) {
		ssize_t got = get_read(get, left < GET_PIECE ? (size_t)left : GET_PIECE);

		if (got <= 0 || helper_write(get->side, get->piece, (size_t)got) < 0)
			return;
		left -= got;
	}
	helper_end(get->side);
}

/* A refusal with the headers of its own. */
static void
get_refuse_range(struct get *get, struct helper_head *head)
{
	AUTO_FREE char *text = alloc_format(
		"{\"code\":\"range_not_satisfiable\",\"detail\":\"the file has %lld bytes\"}",
		(long long)get->st.st_size);

	head->content_type = "application/json";
	head->length = (int64_t)strlen(text);
	helper_begin(get->side, head);
	if (get->call->head || helper_write(get->side, text, (size_t)head->length) == 0)
		helper_end(get->side);
}

static void
get_sized(struct get *get)
{
	const struct range_ask ask = { get->call->range, get->call->if_range, get->call->if_none_match };
	AUTO_FREE char *etag = file_etag(&get->st);
	struct range range;
	char where[96] = "";
	const char *headers[] = { "ETag", etag, "Accept-Ranges", "bytes", NULL, where, NULL };
	struct helper_head head = { .content_type = get_type, .headers = headers };

	head.status = range_decide(&ask, etag, get->st.st_size, &range);
	if (head.status == 206)
		snprintf(where, sizeof where, "bytes %lld-%lld/%lld", (long long)range.first,
			(long long)(range.first + range.length - 1), (long long)get->st.st_size);
	else if (head.status == 416)
		snprintf(where, sizeof where, "bytes */%lld", (long long)get->st.st_size);
	if (*where != '\0')
		headers[4] = "Content-Range";
	if (head.status == 416) {
		get_refuse_range(get, &head);
		return;
	}
	if (head.status == 304)
		head.content_type = NULL;
	head.length = range.length;
	helper_begin(get->side, &head);
	get_send(get, &range);
}

void
file_get_run(struct helper_side *side, const void *arg)
{
	static struct get get;

	get.side = side;
	get.call = arg;
	if (!file_path_check(side, get.call->path))
		return;
	if (get_open(&get) < 0)
		helper_refuse_errno(side, errno, "%s", get.call->path);
	else if (get_is_unsized(&get))
		get_unsized(&get);
	else
		get_sized(&get);
}
