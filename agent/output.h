/*
 * output.h - what a command wrote to one stream: all of it, or its head and tail.
 *
 * Memory grows with what was really written, up to the cap: half for the first
 * bytes, half for a ring of the last ones. The count is always exact. What
 * exceeds the cap goes to a spool, if there is one, from the first byte on. So
 * these bytes can be read at any time: from 0 up to where head or spool end, and
 * the last ones.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_OUTPUT_H
#define ORCHARD_AGENT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hold;
struct spool;
struct spool_store;

struct output {
	uint8_t *head, *tail;
	size_t head_max, tail_max;
	size_t tail_shown; /* of the tail, in a text; a reader that is waited for may need more of it */
	size_t head_len, head_size;
	size_t tail_len, tail_size;
	size_t tail_next; /* where the ring writes once it is full */
	uint64_t total;
	struct spool_store *store; /* NULL: no spool is to be begun */
	uint64_t spool_max;
	struct spool *spool; /* NULL: none yet, or none any more */
	void (*on_add)(void *arg); /* may be NULL */
	void *on_add_arg;
	const struct hold *hold; /* NULL: what is not kept is lost, whoever reads */
	uint64_t taken; /* the reader that is waited for has all before it */
	void (*on_taken)(void *arg); /* may be NULL; only marks work to be done */
	void *on_taken_arg;
};

void output_init(struct output *output, size_t max);
void output_fini(struct output *output);
/* Before the first byte: at most max bytes go to a spool when memory does not hold all. */
void output_spool_to(struct output *output, struct spool_store *store, uint64_t max);
/* Before the first byte: no byte shall be lost that a reader may still come for. */
void output_hold(struct output *output, const struct hold *hold);
/* How many bytes may be added now so that the reader that is waited for gets all; it grows by output_take(). */
size_t output_room(struct output *output);
/* That reader has all before offset. */
void output_take(struct output *output, uint64_t offset);
/* Would bytes be lost that the reader has not taken, should memory be given back now? */
bool output_is_owed(const struct output *output);
void output_add(struct output *output, const void *data, size_t len);
/* No more will come: gives back memory that was held for growth. */
void output_settle(struct output *output);
bool output_is_truncated(const struct output *output);
/* Bytes of memory held. */
size_t output_held(const struct output *output);
/* Head, marker line if any was lost, tail; no character is cut there. malloc'ed, the caller's. */
void output_text(const struct output *output, uint8_t **ret_text, size_t *ret_len);

/*
 * At most max bytes from offset on, without a gap between them: *ret_at is the position of the first, greater
 * than offset when bytes between are not kept, and never beyond the total. 0: nothing is kept from there on.
 */
size_t output_read(struct output *output, uint64_t offset, void *dst, size_t max, uint64_t *ret_at);
/* No more will come: memory's bytes go to a spool, as far as it takes them; output_text is over. */
void output_leave_memory(struct output *output, struct spool_store *store);
/* Only memory's bytes are left. */
void output_drop_spool(struct output *output);

#endif
