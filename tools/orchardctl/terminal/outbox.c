/* outbox.c - a list. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/outbox.h"

#include "base/alloc.h"

#include <libwebsockets.h>
#include <stdlib.h>
#include <string.h>

struct waiting {
	struct waiting *next;
	size_t len;
	unsigned char bytes[]; /* LWS_PRE, then the text */
};

void
outbox_init(struct outbox *outbox)
{
	*outbox = (struct outbox){ .first = NULL };
	outbox->last = &outbox->first;
}

void
outbox_clear(struct outbox *outbox)
{
	while (outbox->first != NULL)
		outbox_drop(outbox);
}

void
outbox_push(struct outbox *outbox, const char *text)
{
	size_t len = strlen(text);
	struct waiting *waiting = alloc_bytes(sizeof *waiting + LWS_PRE + len);

	waiting->next = NULL;
	waiting->len = len;
	memcpy(waiting->bytes + LWS_PRE, text, len);
	*outbox->last = waiting;
	outbox->last = &waiting->next;
	outbox->bytes += len;
}

unsigned char *
outbox_next(struct outbox *outbox, size_t *ret_len)
{
	if (outbox->first == NULL)
		return NULL;
	*ret_len = outbox->first->len;
	return outbox->first->bytes + LWS_PRE;
}

void
outbox_drop(struct outbox *outbox)
{
	struct waiting *waiting = outbox->first;

	outbox->first = waiting->next;
	if (outbox->first == NULL)
		outbox->last = &outbox->first;
	outbox->bytes -= waiting->len;
	free(waiting);
}
