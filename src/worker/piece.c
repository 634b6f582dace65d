/* piece.c - memory handed over by reference. */
/* SPDX-License-Identifier: MIT */
#include "worker/piece.h"

#include <event2/buffer.h>
#include <stdlib.h>

static void
piece_free(const void *data, size_t len, void *memory)
{
	(void)data;
	(void)len;
	free(memory);
}

void
piece_add(struct evbuffer *out, void *memory, size_t len)
{
	if (evbuffer_add_reference(out, memory, len, piece_free, memory) != 0)
		abort();
}
