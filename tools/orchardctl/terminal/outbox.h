/* outbox.h - text frames that wait for their turn, each with the room before it that libwebsockets wants. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_OUTBOX_H
#define ORCHARDCTL_TERMINAL_OUTBOX_H

#include <stddef.h>

struct waiting;

struct outbox {
	struct waiting *first, **last;
	size_t bytes;
};

void outbox_init(struct outbox *outbox);
void outbox_clear(struct outbox *outbox);
void outbox_push(struct outbox *outbox, const char *text);
/* NULL when nothing waits; writable, as it gets masked where it lies. */
unsigned char *outbox_next(struct outbox *outbox, size_t *ret_len);
void outbox_drop(struct outbox *outbox);

#endif
