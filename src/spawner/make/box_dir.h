/*
 * box_dir.h - sandboxes/<name>: the writable layer of a sandbox (upper/, work/) and what is its agent's alone (spool/).
 *
 * One that is made ahead has the name of its blank until its record is written.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BOX_DIR_H
#define ORCHARD_SPAWNER_BOX_DIR_H

#include "base/cleanup.h"

#include <stdint.h>

struct err;
struct site;

/* An empty one; ERR_EXISTS. */
int box_dir_make(const struct site *site, const char *name, int *ret_fd, struct err *err) MUSTCHECK;
int box_dir_open(const struct site *site, const char *name, int *ret_fd, struct err *err) MUSTCHECK;
/* What belongs in it, owned by that host id. */
int box_dir_fill(int box_fd, uint32_t first_id, struct err *err) MUSTCHECK;
/* Gives it another name, which must be free (ERR_EXISTS). */
int box_dir_rename(const struct site *site, const char *name, const char *to, struct err *err) MUSTCHECK;
int box_dir_open_spool(int box_fd, int *ret_fd, struct err *err) MUSTCHECK;
/* Into the trash, as uid or a name that begins so; nothing there is fine. Deleting files is slow and happens later. */
int box_dir_discard(const struct site *site, const char *name, const char *uid, struct err *err) MUSTCHECK;
/* Deletes what is in the trash as that uid, if anything is: for what is small, and nobody else would ask for. */
void box_dir_sweep(const struct site *site, const char *uid);

#endif
