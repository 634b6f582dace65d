/* answers.h - what peers ask of the controller. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_ANSWERS_H
#define ORCHARD_CONTROLLER_ANSWERS_H

#include <stddef.h>
#include <stdint.h>

struct control;

/* A packet of a peer, as struct peers_options wants it; arg: the struct control. */
int answers_on_message(uint64_t peer, const void *data, size_t len, void *arg);

/* Why no pods can be made now, and the cure; "": they can. Valid until the loop goes on. */
const char *answers_problem(const struct control *c);

#endif
