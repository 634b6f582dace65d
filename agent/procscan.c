/* procscan.c - one pass over /proc, then the closure of "child of a member". */
/* SPDX-License-Identifier: MIT */
#include "agent/procscan.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROCSCAN_MAX_ENVIRON = 1 << 20 };

struct procscan_entry {
	pid_t pid, parent, session;
	bool member;
};

struct procscan {
	int proc_fd;
	struct procscan_entry *entries;
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

static bool
procscan_is_member(const struct procscan *scan, pid_t pid)
{
	for (size_t i = 0; i < scan->count; i++)
		if (scan->entries[i].pid == pid)
			return scan->entries[i].member;
	return false;
}

static bool
procscan_is_marked(const struct procscan *scan, pid_t pid, const char *job_id)
{
	AUTO_FREE char *text = NULL;
	struct err ignored;
	char path[32], marker[96];
	size_t len;

	snprintf(path, sizeof path, "%d/environ", (int)pid);
	if (file_read_at(scan->proc_fd, path, PROCSCAN_MAX_ENVIRON, &text, &len, &ignored) < 0)
		return false;
	snprintf(marker, sizeof marker, "%s=%s", PROCSCAN_MARKER, job_id);
	for (size_t at = 0; at < len; at += strlen(text + at) + 1)
		if (strcmp(text + at, marker) == 0)
			return true;
	return false;
}

static void
procscan_close(struct procscan *scan)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < scan->count; i++) {
			struct procscan_entry *entry = &scan->entries[i];

			if (!entry->member && procscan_is_member(scan, entry->parent))
				entry->member = changed = true;
		}
	}
}

int
procscan_signal(int proc_fd, pid_t leader, const char *job_id, int sig)
{
	struct procscan scan = { .proc_fd = proc_fd };
	int count = 0;

	if (leader > 1 && sig != 0)
		kill(-leader, sig);
	if (leader > 1 && sig == SIGTERM)
		kill(-leader, SIGCONT);
	if (proc_fd < 0 || leader <= 1 || procscan_load(&scan) < 0)
		return -1;
	for (size_t i = 0; i < scan.count; i++) {
		struct procscan_entry *entry = &scan.entries[i];

		entry->member = entry->session == leader || entry->pid == leader ||
			(entry->parent == getpid() && procscan_is_marked(&scan, entry->pid, job_id));
	}
	procscan_close(&scan);
	for (size_t i = 0; i < scan.count; i++) {
		if (!scan.entries[i].member)
			continue;
		count++;
		if (sig != 0)
			kill(scan.entries[i].pid, sig);
		if (sig == SIGTERM)
			kill(scan.entries[i].pid, SIGCONT);
	}
	free(scan.entries);
	return count;
}
