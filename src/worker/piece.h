/*
 * piece.h - a piece of a streamed answer in exactly the memory it needs.
 *
 * What a slow client has not read yet stands in such pieces; an evbuffer's own memory comes in powers of two.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_PIECE_H
#define ORCHARD_WORKER_PIECE_H

#include <stddef.h>

struct evbuffer;

/* Takes memory, which was malloc'ed. */
void piece_add(struct evbuffer *out, void *memory, size_t len);

#endif
