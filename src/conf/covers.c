/* covers.c - the tables. */
/* SPDX-License-Identifier: MIT */
#include "conf/covers.h"

#include <stdio.h>

const char *const covers_readonly[] = { "/proc/sys", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sysrq-trigger",
	NULL };
const char *const covers_files[] = { "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/timer_list",
	"/proc/timer_stats", "/proc/latency_stats", "/proc/sched_debug", "/proc/kmsg", "/proc/kallsyms",
	"/proc/interrupts", NULL };
const char *const covers_dirs[] = { "/proc/acpi", "/proc/scsi", "/proc/asound", "/sys/firmware",
	"/sys/devices/virtual/powercap", NULL };
/* PID 1 has one thread. */
const char *const covers_agent_readonly[] = { "/proc/1/oom_score_adj", "/proc/1/task/1/oom_score_adj", NULL };
const char *const covers_agent_files[] = { "/proc/1/oom_adj", "/proc/1/task/1/oom_adj", NULL };

void
covers_processor(int cpu, char *buf, size_t size)
{
	snprintf(buf, size, "/sys/devices/system/cpu/cpu%d/thermal_throttle", cpu);
}
