/*
 * outbox.h - frames that wait for their turn to be written.
 *
 * A WebSocket takes one frame each time it says that it is writable, so everything waits here. The owner keeps it
 * bounded: it stops reading where the frames come from.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_GATEWAY_OUTBOX_H
#define ORCHARD_GATEWAY_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

struct frame;

struct outbox {
	struct frame *head, **tail;
	size_t bytes; /* of memory: many small frames weigh more than what they say */
};

void outbox_init(struct outbox *outbox);
void outbox_fini(struct outbox *outbox);

/* A text frame or a binary one of len bytes, to be filled by the caller and pushed. */
struct frame *frame_create(bool binary, size_t len);
unsigned char *frame_body(struct frame *frame);
/* Takes the frame. */
void outbox_push(struct outbox *outbox, struct frame *frame);
/* The next frame, which is the caller's, or NULL. */
struct frame *outbox_take(struct outbox *outbox);
size_t frame_len(const struct frame *frame);
bool frame_is_binary(const struct frame *frame);
void frame_free(struct frame *frame);

#endif
