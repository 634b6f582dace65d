/* output.c - a buffer for the head and a ring for the tail, both grown by doubling. */
/* SPDX-License-Identifier: MIT */
#include "agent/output.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUT_FIRST = 4096 };

void
output_init(struct output *output, size_t max)
{
	*output = (struct output){ .head_max = max - max / 2, .tail_max = max / 2 };
}

void
output_fini(struct output *output)
{
	free(output->head);
	free(output->tail);
	*output = (struct output){ 0 };
}

/* Room for len more bytes behind used, never above max. */
static void
output_grow(uint8_t **buffer, size_t *size, size_t used, size_t len, size_t max)
{
	size_t want = *size == 0 ? OUTPUT_FIRST : *size;

	if (used + len <= *size)
		return;
	while (want < used + len && want < max)
		want *= 2;
	if (want > max)
		want = max;
	if (want == *size)
		return;
	*buffer = alloc_resize(*buffer, want);
	*size = want;
}

/* The ring is full: each new byte replaces the oldest one. */
static void
output_wrap(struct output *output, const uint8_t *data, size_t len)
{
	size_t first;

	if (len >= output->tail_max) {
		memcpy(output->tail, data + len - output->tail_max, output->tail_max);
		output->tail_next = 0;
		return;
	}
	first = output->tail_max - output->tail_next;
	if (first > len)
		first = len;
	memcpy(output->tail + output->tail_next, data, first);
	memcpy(output->tail, data + first, len - first);
	output->tail_next = (output->tail_next + len) % output->tail_max;
}

void
output_add(struct output *output, const void *data, size_t len)
{
	const uint8_t *from = data;
	size_t part = output->head_max - output->head_len;

	output->total += len;
	if (part > len)
		part = len;
	if (part > 0) {
		output_grow(&output->head, &output->head_size, output->head_len, part, output->head_max);
		memcpy(output->head + output->head_len, from, part);
		output->head_len += part;
		from += part;
		len -= part;
	}
	part = output->tail_max - output->tail_len;
	if (part > len)
		part = len;
	if (part > 0) {
		output_grow(&output->tail, &output->tail_size, output->tail_len, part, output->tail_max);
		memcpy(output->tail + output->tail_len, from, part);
		output->tail_len += part;
		from += part;
		len -= part;
	}
	if (len > 0 && output->tail_max > 0)
		output_wrap(output, from, len);
}

static void
output_shrink(uint8_t **buffer, size_t *size, size_t used)
{
	if (used == *size)
		return;
	if (used == 0) {
		free(*buffer);
		*buffer = NULL;
	} else {
		*buffer = alloc_resize(*buffer, used);
	}
	*size = used;
}

void
output_settle(struct output *output)
{
	output_shrink(&output->head, &output->head_size, output->head_len);
	output_shrink(&output->tail, &output->tail_size, output->tail_len);
}

bool
output_is_truncated(const struct output *output)
{
	return output->total > output->head_len + output->tail_len;
}

size_t
output_held(const struct output *output)
{
	return output->head_size + output->tail_size;
}

void
output_text(const struct output *output, uint8_t **ret_text, size_t *ret_len)
{
	char marker[64] = "";
	size_t marker_len, len, at;
	uint8_t *text;

	if (output_is_truncated(output))
		snprintf(marker, sizeof marker, "\n...[%" PRIu64 " bytes omitted]...\n",
			output->total - output->head_len - output->tail_len);
	marker_len = strlen(marker);
	len = output->head_len + marker_len + output->tail_len;
	text = alloc_bytes(len + 1);
	if (output->head_len > 0)
		memcpy(text, output->head, output->head_len);
	at = output->head_len;
	memcpy(text + at, marker, marker_len);
	at += marker_len;
	if (output->tail_len > 0) {
		size_t first = output->tail_len - output->tail_next;

		memcpy(text + at, output->tail + output->tail_next, first);
		memcpy(text + at + first, output->tail, output->tail_next);
	}
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
}
