/* counts.h - what the controller counts, brought to the scoreboard each second. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_COUNTS_H
#define ORCHARD_CONTROLLER_COUNTS_H

#include "ipc/scoreboard.h"

struct control;
struct counts;

/* Both borrowed. */
struct counts *counts_create(struct control *c, struct shm_scoreboard *board, struct proc_ref self);
void counts_free(struct counts *counts); /* NULL is fine */

#endif
