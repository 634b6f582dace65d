/* blanks.h - boxes of what helpers hold ready, so that all of it is known and nothing is lost. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_BLANKS_H
#define ORCHARD_SPAWNER_BLANKS_H

#include "base/cleanup.h"

#include <stdbool.h>

struct dispatch;
struct make_order;

/* From now on some are made when there is time; after what an earlier spawner has left is known. */
void blanks_begin(struct dispatch *d);
/* A create asks for that image; one that two in a row ask for is what the next will ask for, too. */
void blanks_note(struct dispatch *d, const struct make_order *order);
/* Whether something of that name is one, or the rest of one. */
bool blanks_is_name(const char *name);

#endif
