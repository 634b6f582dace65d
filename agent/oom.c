/* oom.c - one line of a small kernel file. */
/* SPDX-License-Identifier: MIT */
#include "agent/oom.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t
oom_count(int fd)
{
	static const char name[] = "oom_kill ";
	char text[512];
	ssize_t got;

	if (fd < 0)
		return 0;
	got = pread(fd, text, sizeof text - 1, 0);
	if (got <= 0)
		return 0;
	text[got] = '\0';
	for (const char *line = text; line != NULL && *line != '\0';) {
		if (strncmp(line, name, sizeof name - 1) == 0)
			return strtoull(line + sizeof name - 1, NULL, 10);
		line = strchr(line, '\n');
		line = line == NULL ? NULL : line + 1;
	}
	return 0;
}
