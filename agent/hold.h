/*
 * hold.h - whether a command waits for the reader of its output.
 *
 * The reader is heard whenever it asks for output, also while it takes its time. Once nothing was heard of it
 * for longer than the grace the command runs on as one that nobody reads; a reader that comes back holds it again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_HOLD_H
#define ORCHARD_AGENT_HOLD_H

#include <stdint.h>

struct hold {
	int64_t grace_ms; /* 0: it waits for nobody */
	int64_t heard_ms; /* boot clock */
};

void hold_init(struct hold *hold, int64_t grace_ms);
void hold_hear(struct hold *hold);
/* How long it would wait from now on; 0: not at all. */
int64_t hold_left_ms(const struct hold *hold);

#endif
