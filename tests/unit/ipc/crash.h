/*
 * crash.h - children that are killed at chosen points or at random times.
 *
 * The tests of src/ipc link against a second build of it in which every
 * CRASH_POINT() calls in here.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_IPC_CRASH_H
#define ORCHARD_TESTS_IPC_CRASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef void crash_f(void *arg);

/* Runs f in a child that kills itself at the nth point it passes; false when it came to its end instead. */
bool crash_at(unsigned nth, crash_f *f, void *arg);
/* Starts f in a child; when f returns the child ends with status 0. */
pid_t crash_start(crash_f *f, void *arg);
/* Waits for a child; true when it ended by itself with status 0. */
bool crash_wait(pid_t pid);
/* Sleeps for so many microseconds, then kills with SIGKILL and reaps. */
void crash_kill_after(pid_t pid, unsigned microseconds);
/* Zero-filled memory shared with children, untouched pages cost nothing. */
void *crash_map(size_t bytes);
void crash_unmap(void *memory, size_t bytes);
/* A number below n, from a seed that is printed at the first call. */
unsigned crash_random(unsigned n);

#endif
