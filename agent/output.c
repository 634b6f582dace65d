/* output.c - a buffer for the head and a ring for the tail, both grown by doubling; the spool beside them. */
/* SPDX-License-Identifier: MIT */
#include "agent/output.h"

#include "base/alloc.h"
#include "agent/hold.h"
#include "agent/spool.h"
#include "base/cleanup.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OUTPUT_FIRST = 4096,
	/* What a reader took may be lost behind it, with the process that passed it on: it may come back so far. */
	OUTPUT_BACK = 384 << 10,
	OUTPUT_HELD = OUTPUT_BACK + (128 << 10) /* a tail that lets a reader who is waited for get on */
};

void
output_init(struct output *output, size_t max)
{
	*output = (struct output){ .head_max = max - max / 2, .tail_max = max / 2, .tail_shown = max / 2 };
}

void
output_fini(struct output *output)
{
	free(output->head);
	free(output->tail);
	output_drop_spool(output);
	*output = (struct output){ 0 };
}

void
output_spool_to(struct output *output, struct spool_store *store, uint64_t max)
{
	output->store = max > 0 ? store : NULL;
	output->spool_max = max;
}

void
output_drop_spool(struct output *output)
{
	output->store = NULL;
	if (output->spool != NULL)
		spool_free(output->spool);
	output->spool = NULL;
}

/* Until now memory has all, and the ring has not turned. */
static void
output_begin_spool(struct output *output)
{
	output->spool = spool_create(STEAL_PTR(output->store), output->spool_max);
	if (output->spool == NULL)
		return;
	spool_add(output->spool, output->head, output->head_len);
	spool_add(output->spool, output->tail, output->tail_len);
}

/* Before memory takes the bytes. */
static void
output_spool(struct output *output, const void *data, size_t len)
{
	if (output->store != NULL && output->total + len > output->head_max + output->tail_shown)
		output_begin_spool(output);
	if (output->spool != NULL)
		spool_add(output->spool, data, len);
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

static void
output_remember(struct output *output, const uint8_t *from, size_t len)
{
	size_t part = output->head_max - output->head_len;

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

void
output_hold(struct output *output, const struct hold *hold)
{
	output->hold = hold;
	if (output->tail_max < OUTPUT_HELD)
		output->tail_max = OUTPUT_HELD;
}

/*
 * From where the first bytes end to where the last ones begin nothing is kept: that may reach up to what is taken.
 * A spool that fails in the middle of an addition leaves the rest of it to the tail, which is larger than any.
 */
size_t
output_room(struct output *output)
{
	uint64_t memory = output->head_max + output->tail_shown, kept = output->head_max;
	uint64_t taken = output->taken > OUTPUT_BACK ? output->taken - OUTPUT_BACK : 0, end;

	if (output->hold == NULL || hold_left_ms(output->hold) == 0)
		return SIZE_MAX;
	if (output->store != NULL && output->total < memory)
		return (size_t)(memory - output->total);
	if (output->store != NULL)
		output_begin_spool(output);
	if (output->spool != NULL && spool_reach(output->spool) > kept)
		kept = spool_reach(output->spool);
	end = (taken > kept ? taken : kept) + output->tail_max;
	return end > output->total ? (size_t)(end - output->total) : 0;
}

void
output_take(struct output *output, uint64_t offset)
{
	if (offset <= output->taken)
		return;
	output->taken = offset;
	if (output->on_taken != NULL)
		output->on_taken(output->on_taken_arg);
}

bool
output_is_owed(const struct output *output)
{
	if (output->hold == NULL || hold_left_ms(output->hold) == 0 || output->taken >= output->total)
		return false;
	return output_is_truncated(output) && (output->spool == NULL || spool_len(output->spool) < output->total);
}

void
output_add(struct output *output, const void *data, size_t len)
{
	if (len == 0)
		return;
	output_spool(output, data, len);
	output_remember(output, data, len);
	output->total += len;
	if (output->on_add != NULL)
		output->on_add(output->on_add_arg);
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

/* The first bytes of the tail that a text does not show. */
static size_t
output_unshown(const struct output *output)
{
	return output->tail_len > output->tail_shown ? output->tail_len - output->tail_shown : 0;
}

bool
output_is_truncated(const struct output *output)
{
	return output->total > output->head_len + output->tail_len - output_unshown(output);
}

size_t
output_held(const struct output *output)
{
	return output->head_size + output->tail_size;
}

/* Where the tail of a text begins: not with the end of a character whose beginning is not in it. */
static size_t
output_tail_from(const struct output *output)
{
	size_t from = output_unshown(output), torn = 0;

	while (torn < 3 && from < output->tail_len &&
		(output->tail[(output->tail_next + from) % output->tail_len] & 0xc0) == 0x80) {
		torn++;
		from++;
	}
	return from;
}

static size_t
output_copy_tail(const struct output *output, size_t from, uint8_t *dst)
{
	size_t place = output->tail_next + from, len = output->tail_len - from, first;

	if (len == 0)
		return 0;
	place %= output->tail_len;
	first = output->tail_len - place < len ? output->tail_len - place : len;
	memcpy(dst, output->tail + place, first);
	memcpy(dst + first, output->tail, len - first);
	return len;
}

void
output_text(const struct output *output, uint8_t **ret_text, size_t *ret_len)
{
	size_t head = output->head_len, from = 0, len;
	char marker[64] = "";
	uint8_t *text;

	if (output_is_truncated(output)) {
		head = text_utf8_whole(output->head, head);
		from = output_tail_from(output);
		snprintf(marker, sizeof marker, "\n...[%" PRIu64 " bytes omitted]...\n",
			output->total - head - (output->tail_len - from));
	}
	text = alloc_bytes(head + strlen(marker) + output->tail_len + 1);
	if (head > 0)
		memcpy(text, output->head, head);
	memcpy(text + head, marker, strlen(marker));
	len = head + strlen(marker);
	len += output_copy_tail(output, from, text + len);
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
}

/* The bytes that memory has at that position, NULL when it has none. */
static const uint8_t *
output_memory(const struct output *output, uint64_t at, size_t *ret_len)
{
	uint64_t tail_at = output->total - output->tail_len;
	size_t place;

	if (at < output->head_len) {
		*ret_len = output->head_len - (size_t)at;
		return output->head + at;
	}
	if (at < tail_at || at >= output->total)
		return NULL;
	place = (output->tail_next + (size_t)(at - tail_at)) % output->tail_len;
	*ret_len = output->tail_len - place;
	if (*ret_len > output->total - at)
		*ret_len = (size_t)(output->total - at);
	return output->tail + place;
}

static uint64_t
output_next_kept(const struct output *output, uint64_t offset)
{
	uint64_t first = output->head_len, last = output->tail_len;

	if (output->spool != NULL && spool_len(output->spool) > first)
		first = spool_len(output->spool);
	if (output->spool != NULL && spool_end_len(output->spool) > last)
		last = spool_end_len(output->spool);
	if (offset < first)
		return offset;
	if (offset < output->total - last)
		return output->total - last;
	return offset < output->total ? offset : output->total;
}

static size_t
output_copy(const struct output *output, uint64_t at, void *dst, size_t max)
{
	size_t len = 0;
	const uint8_t *memory = output_memory(output, at, &len);
	uint64_t end_at;

	if (memory != NULL) {
		if (len > max)
			len = max;
		memcpy(dst, memory, len);
		return len;
	}
	if (output->spool == NULL || at >= output->total)
		return 0;
	end_at = output->total - spool_end_len(output->spool);
	if (at >= end_at)
		return spool_read_end(output->spool, at - end_at, dst, max);
	return spool_read(output->spool, at, dst, max);
}

size_t
output_read(struct output *output, uint64_t offset, void *dst, size_t max, uint64_t *ret_at)
{
	size_t len = 0, got;

	*ret_at = output_next_kept(output, offset);
	while (len < max && (got = output_copy(output, *ret_at + len, (uint8_t *)dst + len, max - len)) > 0)
		len += got;
	if (len > 0 || max == 0 || *ret_at >= output->total)
		return len;
	/* The file cannot be read: without it the answer is what memory has. */
	output_drop_spool(output);
	return output_read(output, offset, dst, max, ret_at);
}

static void
output_free_memory(struct output *output)
{
	free(output->head);
	free(output->tail);
	output->head = output->tail = NULL;
	output->head_len = output->head_size = 0;
	output->tail_len = output->tail_size = output->tail_next = 0;
}

/* What of head and tail the spool does not have yet. */
static void
output_spool_memory(const struct output *output, struct spool *spool)
{
	uint64_t at = output->total - output->tail_len;

	if (spool_len(spool) < output->head_len) {
		size_t len = (size_t)spool_len(spool);

		spool_extend(spool, output->head_len);
		spool_add(spool, output->head + len, output->head_len - len);
	}
	if (at < spool_len(spool))
		at = spool_len(spool);
	if (at == output->total || !spool_begin_end(spool, output->total - at))
		return;
	for (size_t len = 0; at < output->total; at += len) {
		const uint8_t *memory = output_memory(output, at, &len);

		spool_add_end(spool, memory, len);
	}
}

void
output_leave_memory(struct output *output, struct spool_store *store)
{
	if (output->spool == NULL && output->total > 0)
		output->spool = spool_create(store, output->total);
	if (output->spool != NULL)
		output_spool_memory(output, output->spool);
	output->store = NULL;
	output_free_memory(output);
}
