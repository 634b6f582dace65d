/* proc.h - who a process is: a pid alone is reused, pid + start time + boot is not. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_PROC_H
#define ORCHARD_BASE_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Field 22 of /proc/PID/stat (clock ticks since boot); 0 when there is no such process. */
uint64_t proc_start_time(pid_t pid);
/* Its parent; 0 when there is no such process (or the parent is outside our pid namespace). */
pid_t proc_parent(pid_t pid);
/* True while that very process exists (a zombie does not count). */
bool proc_is_alive(pid_t pid, uint64_t start_time);
/* /proc/sys/kernel/random/boot_id, 36 characters and NUL; all-zero UUID if unreadable. */
void proc_boot_id(char ret_id[37]);

#endif
