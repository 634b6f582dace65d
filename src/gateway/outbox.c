/* outbox.c - a queue of frames, each with the room in front that libwebsockets writes its header into. */
/* SPDX-License-Identifier: MIT */
#include "gateway/outbox.h"

#include "base/alloc.h"

#include <libwebsockets.h>
#include <stdlib.h>

struct frame {
	struct frame *next;
	size_t len;
	bool binary;
	unsigned char data[]; /* LWS_PRE bytes, then the body */
};

void
outbox_init(struct outbox *outbox)
{
	*outbox = (struct outbox){ .tail = &outbox->head };
}

void
outbox_fini(struct outbox *outbox)
{
	struct frame *frame;

	while ((frame = outbox_take(outbox)) != NULL)
		frame_free(frame);
}

static size_t
frame_cost(const struct frame *frame)
{
	return sizeof *frame + LWS_PRE + frame->len + 1;
}

struct frame *
frame_create(bool binary, size_t len)
{
	struct frame *frame = alloc_bytes(sizeof *frame + LWS_PRE + len + 1);

	frame->next = NULL;
	frame->len = len;
	frame->binary = binary;
	return frame;
}

unsigned char *
frame_body(struct frame *frame)
{
	return frame->data + LWS_PRE;
}

size_t
frame_len(const struct frame *frame)
{
	return frame->len;
}

bool
frame_is_binary(const struct frame *frame)
{
	return frame->binary;
}

void
frame_free(struct frame *frame)
{
	free(frame);
}

void
outbox_push(struct outbox *outbox, struct frame *frame)
{
	frame->next = NULL; /* it may come from another one */
	*outbox->tail = frame;
	outbox->tail = &frame->next;
	outbox->bytes += frame_cost(frame);
}

struct frame *
outbox_take(struct outbox *outbox)
{
	struct frame *frame = outbox->head;

	if (frame == NULL)
		return NULL;
	outbox->head = frame->next;
	if (outbox->head == NULL)
		outbox->tail = &outbox->head;
	outbox->bytes -= frame_cost(frame);
	return frame;
}
