/*
 * disk_watch.h - limits the disk of sandboxes where the filesystem can't: a child measures, the agent ends.
 *
 * Each limited sandbox has a pipe `disk` beside upper/ whose other end its agent
 * holds. The child finds the sandboxes by their directories, so whoever comes
 * after it, in this spawner or a later one, goes on without being told.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_DISK_WATCH_H
#define ORCHARD_SPAWNER_DISK_WATCH_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stdint.h>

struct disk_watch;
struct err;
struct event_base;
struct site;

/* Makes the pipe below box_fd and opens it for the agent. */
int disk_watch_pipe(int box_fd, int *ret_fd, struct err *err) MUSTCHECK;

/* What a sandbox took when it was last measured; bytes -1: it can't be measured. */
typedef void disk_watch_measured_f(const char *uid, int64_t bytes, void *arg);

/* Starts the child, and another one whenever it has died. */
struct disk_watch *
disk_watch_create(struct event_base *base, const struct site *site, disk_watch_measured_f *measured, void *arg);
void disk_watch_free(struct disk_watch *watch);

/* What the child says, one packet each. */
struct disk_watch_word {
	char uid[ID_UUID_SIZE];
	int64_t bytes;
};
/* The child: measures, and tells it to the other end of the socket, until that is closed. */
_Noreturn void disk_watch_run(const struct site *site, int socket);

#endif
