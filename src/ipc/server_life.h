/*
 * server_life.h - since when this server has been there for its clients, in shared memory.
 *
 * An outage is a time in which nothing served: no server, no worker, or a machine
 * that slept. What clients have to say in time counts from its end. The first
 * start in a boot also fixes the clock by which kept things age (clock_steady()).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SERVER_LIFE_H
#define ORCHARD_IPC_SERVER_LIFE_H

#include <stdint.h>

struct shm_life;

enum { SERVER_LIFE_OUTAGE_MS = 3000 }; /* a silence of more than this was an outage */

/*
 * Of the reaper, around the work of each of its ticks, while a worker is ready. What lies between an end and the
 * next begin counts as silence, the work itself does not. Two reapers at once do no harm.
 */
void server_life_begin(struct shm_life *life, int64_t now_ms);
void server_life_end(struct shm_life *life, int64_t now_ms);

/* Boot clock: when the last outage was over; now_ms while one lasts. */
int64_t server_life_since(const struct shm_life *life, int64_t now_ms);

#endif
