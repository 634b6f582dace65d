/*
 * noise.h - the two lines that an interactive bash without a tty writes first.
 *
 * They are dropped when both stand, complete, at the very start of stderr; every
 * other byte passes unchanged, these words elsewhere too.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_NOISE_H
#define ORCHARD_AGENT_NOISE_H

#include <stdbool.h>
#include <stddef.h>

struct output;

struct noise {
	bool decided;
	size_t len;
	char held[192];
};

void noise_init(struct noise *noise, bool expected);
void noise_pass(struct noise *noise, struct output *output, const void *data, size_t len);
/* No more will come: what is still held passes. */
void noise_end(struct noise *noise, struct output *output);

#endif
