/* procscan.c - one pass over /proc; then, for each command, the closure of "child of a member". */
/* SPDX-License-Identifier: MIT */
#include "agent/procscan.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/id.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCSCAN_MAX_ENVIRON = 1 << 20 };

struct procscan_entry {
	pid_t pid, parent, session;
	struct procscan_entry *above; /* the parent, where it is listed */
	char job_id[ID_UUID_SIZE]; /* of an orphan, once it was looked for; "" names none */
	bool looked, member;
};

struct procscan {
	int proc_fd;
	struct procscan_entry *entries; /* by pid */
	size_t count, size;
};

/* False for a zombie or one that has gone. The name in field 2 may hold anything, so the last ')' counts. */
static bool
procscan_read(int proc_fd, pid_t pid, struct procscan_entry *entry)
{
	AUTO_FREE char *text = NULL;
	struct err ignored;
	char path[32], state;
	const char *tail;
	size_t len;

	snprintf(path, sizeof path, "%d/stat", (int)pid);
	if (file_read_at(proc_fd, path, 4096, &text, &len, &ignored) < 0)
		return false;
	tail = strrchr(text, ')');
	entry->pid = pid;
	return tail != NULL && sscanf(tail, ") %c %d %*d %d", &state, &entry->parent, &entry->session) == 3 &&
		state != 'Z' && state != 'X';
}

static int
procscan_load(struct procscan *scan)
{
	int fd = openat(scan->proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *item;

	if (dir == NULL)
		return -1;
	while ((item = readdir(dir)) != NULL) {
		struct procscan_entry entry = { 0 };
		pid_t pid = (pid_t)atoi(item->d_name);

		if (pid <= 1 || pid == getpid() || !procscan_read(scan->proc_fd, pid, &entry))
			continue;
		if (scan->count == scan->size) {
			scan->size = scan->size == 0 ? 64 : scan->size * 2;
			scan->entries = alloc_resize(scan->entries, scan->size * sizeof *scan->entries);
		}
		scan->entries[scan->count++] = entry;
	}
	return 0;
}

static int
procscan_compare(const void *left, const void *right)
{
	const struct procscan_entry *a = left, *b = right;

	return (a->pid > b->pid) - (a->pid < b->pid);
}

static void
procscan_link(struct procscan *scan)
{
	if (scan->count > 0)
		qsort(scan->entries, scan->count, sizeof *scan->entries, procscan_compare);
	for (size_t i = 0; i < scan->count; i++) {
		struct procscan_entry wanted = { .pid = scan->entries[i].parent };

		scan->entries[i].above = bsearch(
			&wanted, scan->entries, scan->count, sizeof wanted, procscan_compare);
	}
}

struct procscan *
procscan_take(int proc_fd)
{
	struct procscan *scan = alloc_zero(1, sizeof *scan);

	scan->proc_fd = proc_fd;
	if (proc_fd < 0 || procscan_load(scan) < 0) {
		procscan_free(scan);
		return NULL;
	}
	procscan_link(scan);
	return scan;
}

void
procscan_free(struct procscan *scan)
{
	if (scan != NULL)
		free(scan->entries);
	free(scan);
}

static void
procscan_look(const struct procscan *scan, struct procscan_entry *entry)
{
	static const char marker[] = PROCSCAN_MARKER "=";
	AUTO_FREE char *text = NULL;
	struct err ignored;
	char path[32];
	size_t len;

	entry->looked = true;
	snprintf(path, sizeof path, "%d/environ", (int)entry->pid);
	if (file_read_at(scan->proc_fd, path, PROCSCAN_MAX_ENVIRON, &text, &len, &ignored) < 0)
		return;
	for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
		const char *id;

		if (strncmp(text + at, marker, sizeof marker - 1) != 0)
			continue;
		id = text + at + sizeof marker - 1;
		if (strlen(id) < sizeof entry->job_id)
			memcpy(entry->job_id, id, strlen(id));
		return;
	}
}

static bool
procscan_is_marked(const struct procscan *scan, struct procscan_entry *entry, const char *job_id)
{
	if (entry->parent != getpid())
		return false;
	if (!entry->looked)
		procscan_look(scan, entry);
	return strcmp(entry->job_id, job_id) == 0;
}

static void
procscan_close(struct procscan *scan)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < scan->count; i++) {
			struct procscan_entry *entry = &scan->entries[i];

			if (!entry->member && entry->above != NULL && entry->above->member)
				entry->member = changed = true;
		}
	}
}

int
procscan_signal(struct procscan *scan, pid_t leader, const char *job_id, int sig)
{
	int count = 0;

	for (size_t i = 0; i < scan->count; i++) {
		struct procscan_entry *entry = &scan->entries[i];

		entry->member = entry->session == leader || entry->pid == leader ||
			procscan_is_marked(scan, entry, job_id);
	}
	procscan_close(scan);
	for (size_t i = 0; i < scan->count; i++) {
		if (!scan->entries[i].member)
			continue;
		count++;
		/* Its group was told: a trap that is over would run once more. */
		if (sig == SIGTERM && getpgid(scan->entries[i].pid) == leader)
			continue;
		if (sig != 0)
			kill(scan->entries[i].pid, sig);
		if (sig == SIGTERM)
			kill(scan->entries[i].pid, SIGCONT);
	}
	return count;
}
