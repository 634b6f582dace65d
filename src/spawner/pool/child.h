/* child.h - what every process the spawner forks does first. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_CHILD_H
#define ORCHARD_SPAWNER_CHILD_H

#include "base/cleanup.h"

#include <sys/types.h>

struct err;
struct site;

/*
 * Forks from inside the event loop. In the child (returns 0) signals are as at
 * exec, it dies with the spawner, and of all descriptors only 0-2, the site's and
 * `keep` are open, so that nobody waits for an end of file that it would hold back.
 */
pid_t child_fork(const struct site *site, int keep, struct err *err) MUSTCHECK;

/*
 * Runs work(arg) in such a child and waits for it: for what must not change the
 * caller's namespaces, or may die. Its own children become ours.
 */
typedef int child_work_f(void *arg, struct err *err);
int child_run(const struct site *site, child_work_f *work, void *arg, struct err *err) MUSTCHECK;

#endif
