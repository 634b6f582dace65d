/* cgroup_stat.c - what a sandbox takes, as the kernel has counted it: memory reads, none that waits. */
/* SPDX-License-Identifier: MIT */
#include "spawner/cgroup/cgroup_dir.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NS_OF_US = 1000 };

/* The number behind word in a file, or the only one there is; -1: there is none. */
static int64_t
read_number(int dir, const char *file, const char *word)
{
	AUTO_FD fd = dir >= 0 ? openat(dir, file, O_RDONLY | O_CLOEXEC) : -1;
	char text[512];
	const char *at;
	int64_t number;
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;

	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strstr(text, word);
	return at != NULL && sscanf(at + strlen(word), "%" SCNd64, &number) == 1 ? number : -1;
}

/* The v2 tree counts processor time in any group, also where v1 has the limits. */
static int64_t
cpu_us(const struct cgroup_host *host, const char *id, int v2)
{
	AUTO_FD v1 = -1;
	int64_t ns;

	if (v2 >= 0)
		return read_number(v2, "cpu.stat", "usage_usec ");
	v1 = cgroup_open_box(host, CGROUP_CPU, id);
	ns = read_number(v1, "cpuacct.usage", "");
	return ns < 0 ? -1 : ns / NS_OF_US;
}

void
cgroup_box_stat(const struct cgroup_host *host, const char *id, struct cgroup_stat *ret_stat)
{
	AUTO_FD v2 = cgroup_open_box(host, CGROUP_V2, id);
	AUTO_FD memory = cgroup_open_box(host, CGROUP_MEMORY, id);
	AUTO_FD pids = cgroup_open_box(host, CGROUP_PIDS, id);

	ret_stat->cpu_us = cpu_us(host, id, v2);
	ret_stat->memory_bytes = memory >= 0 ? read_number(memory, "memory.usage_in_bytes", "")
					     : read_number(v2, "memory.current", "");
	ret_stat->memory_peak_bytes = memory >= 0 ? read_number(memory, "memory.max_usage_in_bytes", "")
						  : read_number(v2, "memory.peak", "");
	ret_stat->pids = read_number(pids >= 0 ? pids : v2, "pids.current", "");
}
