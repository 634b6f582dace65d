/* nearest.h - what was meant by a word that is none. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_NEAREST_H
#define ORCHARDCTL_NEAREST_H

struct nearest {
	const char *given; /* borrowed, as word is */
	const char *word; /* the nearest so far; NULL: none is near */
	unsigned distance;
};

void nearest_init(struct nearest *nearest, const char *given);
void nearest_try(struct nearest *nearest, const char *word);

#endif
