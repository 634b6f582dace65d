/* usage.c - small files of the kernel, open for good: reading them waits for nothing. */
/* SPDX-License-Identifier: MIT */
#include "agent/usage.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { USAGE_MAX_TEXT = 1024, USAGE_MAX_PROCS = 1 << 20 };

/* Where a number stands: behind word, or alone; the first that is there. */
static const struct usage_source {
	const char *name;
	const char *dir, *file, *word;
	int64_t divisor;
} usage_sources[] = {
	{ "cpu_us", ".", "cpu.stat", "usage_usec ", 1 },
	{ "cpu_us", "cpuacct", "cpuacct.usage", "", 1000 },
	{ "cpu_us", "cpu,cpuacct", "cpuacct.usage", "", 1000 },
	{ "memory_bytes", ".", "memory.current", "", 1 },
	{ "memory_bytes", "memory", "memory.usage_in_bytes", "", 1 },
	{ "memory_peak_bytes", ".", "memory.peak", "", 1 },
	{ "memory_peak_bytes", "memory", "memory.max_usage_in_bytes", "", 1 },
	{ "pids", ".", "pids.current", "", 1 },
	{ "pids", "pids", "pids.current", "", 1 },
};
enum { USAGE_SOURCES = sizeof usage_sources / sizeof usage_sources[0] };

struct usage {
	int fds[USAGE_SOURCES]; /* -1: not there */
};

static bool
usage_has(int dir_fd, const char *name)
{
	return faccessat(dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* All of the machine is in it; some files only others have, or only it. */
static bool
usage_is_root(int dir_fd)
{
	return usage_has(dir_fd, "release_agent") ||
		(usage_has(dir_fd, "cgroup.controllers") && !usage_has(dir_fd, "cgroup.events"));
}

static bool
usage_holds_us(int dir_fd)
{
	AUTO_FREE char *text = NULL, *own = alloc_format("%d", (int)getpid());
	char *rest = NULL;
	struct err err;
	size_t len;

	if (file_read_at(dir_fd, "cgroup.procs", USAGE_MAX_PROCS, &text, &len, &err) < 0)
		return false;
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		if (strcmp(line, own) == 0)
			return true;
	return false;
}

static int
usage_open_source(int root_fd, const struct usage_source *source)
{
	AUTO_FD dir_fd = openat(root_fd, source->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir_fd < 0 || usage_is_root(dir_fd) || !usage_holds_us(dir_fd))
		return -1;
	return openat(dir_fd, source->file, O_RDONLY | O_CLOEXEC);
}

struct usage *
usage_open(const char *root)
{
	AUTO_FD root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct usage *usage = alloc_zero(1, sizeof *usage);

	for (size_t i = 0; i < USAGE_SOURCES; i++)
		usage->fds[i] = root_fd < 0 ? -1 : usage_open_source(root_fd, &usage_sources[i]);
	return usage;
}

void
usage_close(struct usage *usage)
{
	for (size_t i = 0; usage != NULL && i < USAGE_SOURCES; i++)
		if (usage->fds[i] >= 0)
			close(usage->fds[i]);
	free(usage);
}

static bool
usage_read(int fd, const struct usage_source *source, int64_t *ret_number)
{
	char text[USAGE_MAX_TEXT], *at, *end;
	ssize_t got = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
	long long number;

	if (got <= 0)
		return false;
	text[got] = '\0';
	at = strstr(text, source->word);
	if (at == NULL)
		return false;
	errno = 0;
	number = strtoll(at + strlen(source->word), &end, 10);
	if (end == at + strlen(source->word) || errno != 0 || number < 0)
		return false;
	*ret_number = number / source->divisor;
	return true;
}

struct json_object *
usage_json(const struct usage *usage)
{
	struct json_object *body = json_object_new_object();
	int64_t number;

	for (size_t i = 0; usage != NULL && i < USAGE_SOURCES; i++)
		if (usage_read(usage->fds[i], &usage_sources[i], &number))
			json_object_object_add(body, usage_sources[i].name, json_object_new_int64(number));
	return body;
}
