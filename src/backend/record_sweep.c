/*
 * record_sweep.c - filling the index from the log, and removing old segments.
 *
 * A segment goes as a whole: when its head says that all it holds has expired, or,
 * oldest first, when the log is over its budget; in a log that keeps also when the
 * index knows none of its records, which bounds it by the size of the index. It must not go while a live job's
 * description may stand in it: the caller names the oldest segment that is needed,
 * and a description that was kept but whose job the caller has not seen yet is
 * younger than its own expiry (expiring) and than GRACE_S (budget).
 */
/* SPDX-License-Identifier: MIT */
#include "backend/record_log_impl.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { GRACE_S = 60 };

struct segment_list {
	uint32_t *numbers; /* ascending */
	size_t count, room;
};

static int
compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void
add_number(struct segment_list *list, uint32_t number)
{
	if (list->count == list->room) {
		list->room = list->room * 2 + 64;
		list->numbers = reallocarray(list->numbers, list->room, sizeof *list->numbers);
		if (list->numbers == NULL)
			abort();
	}
	list->numbers[list->count++] = number;
}

/* *ret_list->numbers is the caller's to free. */
static int
list_segments(struct record_log *log, struct segment_list *ret_list, struct err *err)
{
	struct segment_list list = { 0 };
	AUTO_DIR *dir = NULL;
	struct dirent *entry;
	int fd = openat(log->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || (dir = fdopendir(fd)) == NULL) {
		err_set_errno(err, errno, "list the job store");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	while ((entry = readdir(dir)) != NULL)
		if (segment_number(entry->d_name) != 0)
			add_number(&list, segment_number(entry->d_name));
	if (list.count > 0)
		qsort(list.numbers, list.count, sizeof *list.numbers, compare_numbers);
	*ret_list = list;
	return 0;
}

static int
open_for_change(struct record_log *log, uint32_t number)
{
	return segment_open(log->dirfd, number, O_RDWR);
}

/* --- rebuilding --- */

/* Which of two records of one key the index knew: the one with the mark; of two such, the later (see record_log.c). */
static bool
is_better(const struct record_head *head, const struct record_head *other)
{
	if ((head->committed != 0) != (other->committed != 0))
		return head->committed != 0;
	return head->written_at > other->written_at;
}

static bool
other_is_worse(struct record_log *log, const struct record_head *head, const struct record_location *other)
{
	struct record_head their;
	AUTO_FD fd = open_for_change(log, other->segment);

	return fd < 0 || !segment_read_head(fd, other->offset, &their) || is_better(head, &their);
}

/* Nothing lives on without the shared memory: what had not ended has ended by now. */
static struct record_life
life_of(const struct record_log *log, const struct record_head *head)
{
	struct record_life life = { .expires_at = head->expires_at, .ended_at = head->written_at };

	if (log->keep)
		life.ended_at = head->committed > 1 ? (double)head->committed : clock_steady();
	return life;
}

static int
index_record(struct record_log *log, const struct record_head *head, const struct record_location *place,
	struct err *err)
{
	struct record_location location = *place;
	struct record_life life = life_of(log, head);
	int rc = record_index_put(log->index, &head->key, &life, &location, err);

	/* What may have run to the end of the shared memory is looked for in all segments, what had ended gives way. */
	if (rc < 0 && err->code == ERR_BUSY && log->keep && head->committed > 1)
		return 0;
	if (rc < 0 && err->code == ERR_BUSY && record_index_make_room(log->index, clock_steady(), life.ended_at))
		rc = record_index_put(log->index, &head->key, &life, &location, err);
	if (rc < 0 && err->code == ERR_EXISTS) {
		if (!other_is_worse(log, head, &location))
			return 0;
		record_index_drop(log->index, &head->key);
		location = *place;
		return record_index_put(log->index, &head->key, &life, &location, err);
	}
	return rc;
}

static int
scan_segment(struct record_log *log, uint32_t number, double now, struct err *err)
{
	AUTO_FD fd = open_for_change(log, number);
	uint64_t offset = segment_first();
	struct record_head head;
	double said, latest = 0;
	bool sealed;

	if (fd < 0) {
		log_warn("job store: segment %u is left out: %s", number,
			errno == ENOENT ? "it is no plain file" : strerror(errno));
		return 0;
	}
	said = segment_expires_at(fd, &sealed);
	for (; segment_read_head(fd, offset, &head); offset = segment_next(offset, &head)) {
		struct record_location place = { .segment = number, .length = head.length, .offset = offset };

		/* Of a segment that was closed in order every byte is on disk. */
		if (!sealed && !segment_check_data(fd, offset, &head))
			break;
		if (head.expires_at > latest)
			latest = head.expires_at;
		if (head.indexed && head.expires_at > now && index_record(log, &head, &place, err) < 0)
			return -1;
	}
	if (said < latest)
		segment_set_expires_at(fd, latest);
	return 0;
}

int
record_log_rebuild(struct record_log *log, struct err *err)
{
	struct segment_list list;
	double now = clock_steady();
	int rc = 0;

	if (list_segments(log, &list, err) < 0)
		return -1;
	if (list.count > 0)
		record_index_raise_segment(log->index, list.numbers[list.count - 1]);
	/* The newest first: what does not fit into the index is the oldest, but for those of one segment. */
	for (size_t i = list.count; i-- > 0 && rc == 0;)
		rc = scan_segment(log, list.numbers[i], now, err);
	free(list.numbers);
	if (rc < 0 && err->code == ERR_BUSY) {
		log_warn("record log: %s; older ones are forgotten", err->msg);
		rc = 0;
	}
	return rc;
}

/* --- sweeping --- */

enum remove_rule { REMOVE_EXPIRED, REMOVE_OLD };

/* True when the segment is gone; *ret_size is what it took or takes. The lock makes sure that nobody writes to it. */
static bool
remove_if(struct record_log *log, uint32_t number, enum remove_rule rule, double now, int64_t *ret_size)
{
	char name[SEGMENT_NAME_SIZE];
	AUTO_FD fd = open_for_change(log, number);
	struct stat st;
	bool sealed;

	*ret_size = 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno == ENOENT;
	*ret_size = st.st_size;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	if (rule == REMOVE_EXPIRED && segment_expires_at(fd, &sealed) > now)
		return false;
	if (rule == REMOVE_OLD && (double)st.st_mtim.tv_sec > clock_wall() - GRACE_S)
		return false;
	segment_name(number, name);
	/* Truncating frees the space at once, whoever still has the file open. */
	if (ftruncate(fd, 0) < 0 || unlinkat(log->dirfd, name, 0) < 0) {
		log_error("job store: cannot remove %s: %s", name, strerror(errno));
		return false;
	}
	return true;
}

/* Removes what has expired; what stays is in the list afterwards. Returns how many bytes that is. */
static int64_t
remove_expired(struct record_log *log, struct segment_list *list, double now, uint32_t live_from)
{
	size_t kept = 0;
	int64_t bytes = 0, size;

	for (size_t i = 0; i < list->count; i++) {
		uint32_t number = list->numbers[i];
		/* Those from live_from on are only measured: before the year 1970 nothing has expired. */
		double when = number < live_from ? now : -1;

		if (remove_if(log, number, REMOVE_EXPIRED, when, &size))
			continue;
		list->numbers[kept++] = number;
		bytes += size;
	}
	list->count = kept;
	return bytes;
}

/* Removes the oldest until the rest is in the budget; returns the number below which none is left, or 0. */
static uint32_t
remove_over_budget(struct record_log *log, const struct segment_list *list, int64_t bytes, uint32_t live_from)
{
	uint32_t oldest = 0;
	int64_t size;

	for (size_t i = 0; i < list->count && log->max_bytes > 0 && bytes > log->max_bytes; i++) {
		uint32_t number = list->numbers[i];

		if (number >= live_from || !remove_if(log, number, REMOVE_OLD, 0, &size))
			break;
		bytes -= size;
		oldest = number + 1;
	}
	return oldest;
}

/*
 * Removes what the index knows nothing of. A record gets into the index under the lock of its file and right after
 * its bytes: what was last written GRACE_S ago and had no entry when this looked has none now.
 */
static void
remove_unused(struct record_log *log, const struct segment_list *list)
{
	AUTO_FREE bool *used = alloc_zero(list->count + 1, sizeof *used);
	int64_t size;

	record_index_mark_used(log->index, list->numbers, list->count, used);
	for (size_t i = 0; i < list->count; i++)
		if (!used[i])
			remove_if(log, list->numbers[i], REMOVE_OLD, 0, &size);
}

int
record_log_sweep(struct record_log *log, double now, uint32_t live_from, struct err *err)
{
	struct segment_list list;
	uint32_t oldest;
	int64_t bytes;

	if (list_segments(log, &list, err) < 0)
		return -1;
	bytes = remove_expired(log, &list, now, live_from);
	oldest = remove_over_budget(log, &list, bytes, live_from);
	record_index_purge(log->index, now, oldest);
	if (log->keep)
		remove_unused(log, &list);
	free(list.numbers);
	return 0;
}
