/* late_store.h - the stores as if they were far away: what is asked for happens in a later turn of the loop. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TEST_DOMAIN_LATE_STORE_H
#define ORCHARD_TEST_DOMAIN_LATE_STORE_H

#include <stdbool.h>

struct event_base;

/* NULL: they answer at once again. */
void late_store_start(struct event_base *base);
/* From now on nothing is done until late_store_release(). */
void late_store_hold(void);
void late_store_release(void);
/* How many wait for that. */
int late_store_held(void);

#endif
