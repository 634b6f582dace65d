/*
 * destroyed.h - the uids that were destroyed lately, so that none of them is made afterwards.
 *
 * Requests of different peers meet in any order: the create of a process that
 * has died may be read after the destroy that its successor asked for.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWN_DESTROYED_H
#define ORCHARD_SPAWN_DESTROYED_H

#include <stdbool.h>

/* How many are remembered; then the oldest is forgotten. */
enum { DESTROYED_MAX = 8192 };

struct destroyed;

/* Kept in a file of dir_fd, which is borrowed for the call; in memory alone where there can be none (dir_fd -1). */
struct destroyed *destroyed_open(int dir_fd);
void destroyed_close(struct destroyed *destroyed);

/* uid: checked by the caller to be one. Adding it again changes nothing. */
void destroyed_add(struct destroyed *destroyed, const char *uid);
bool destroyed_has(struct destroyed *destroyed, const char *uid);

#endif
