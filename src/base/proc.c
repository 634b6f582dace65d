/* proc.c - reads /proc/PID/stat; a command name may hold spaces and parentheses, so it is skipped from the right. */
/* SPDX-License-Identifier: MIT */
#include "base/proc.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define NIL_UUID "00000000-0000-0000-0000-000000000000"

static bool
proc_read_text(const char *path, char *buf, size_t size)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	do {
		n = read(fd, buf + used, size - 1 - used);
		if (n > 0)
			used += (size_t)n;
	} while (used < size - 1 && (n > 0 || (n < 0 && errno == EINTR)));
	buf[used] = '\0';
	return n >= 0;
}

static bool
proc_read_stat(pid_t pid, char *ret_state, pid_t *ret_parent, uint64_t *ret_start)
{
	char path[64], text[1024];
	const char *p;

	if (pid <= 0)
		return false;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	if (!proc_read_text(path, text, sizeof text))
		return false;
	p = strrchr(text, ')');
	if (p == NULL || p[1] != ' ' || p[2] == '\0')
		return false;
	*ret_state = p[2];
	*ret_parent = (pid_t)strtol(p + 3, NULL, 10);
	/* p stands in front of field 3; field 22 is 19 blanks further. */
	p++;
	for (int field = 3; field < 22; field++) {
		p = strchr(p + 1, ' ');
		if (p == NULL)
			return false;
	}
	*ret_start = strtoull(p + 1, NULL, 10);
	return true;
}

uint64_t
proc_start_time(pid_t pid)
{
	uint64_t start;
	pid_t parent;
	char state;

	return proc_read_stat(pid, &state, &parent, &start) ? start : 0;
}

pid_t
proc_parent(pid_t pid)
{
	uint64_t start;
	pid_t parent;
	char state;

	return proc_read_stat(pid, &state, &parent, &start) ? parent : 0;
}

bool
proc_is_alive(pid_t pid, uint64_t start_time)
{
	uint64_t start;
	pid_t parent;
	char state;

	if (!proc_read_stat(pid, &state, &parent, &start))
		return false;
	return start == start_time && state != 'Z' && state != 'X';
}

void
proc_boot_id(char ret_id[37])
{
	char text[64];

	if (!proc_read_text("/proc/sys/kernel/random/boot_id", text, sizeof text) || strlen(text) < 36)
		memcpy(text, NIL_UUID, sizeof NIL_UUID);
	memcpy(ret_id, text, 36);
	ret_id[36] = '\0';
}
