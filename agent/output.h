/*
 * output.h - what a command wrote to one stream: all of it, or its head and tail.
 *
 * Memory grows with what was really written, up to the cap: half for the first
 * bytes, half for a ring of the last ones. The count is always exact.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_OUTPUT_H
#define ORCHARD_AGENT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
	uint8_t *head, *tail;
	size_t head_max, tail_max;
	size_t head_len, head_size;
	size_t tail_len, tail_size;
	size_t tail_next; /* where the ring writes once it is full */
	uint64_t total;
};

void output_init(struct output *output, size_t max);
void output_fini(struct output *output);
void output_add(struct output *output, const void *data, size_t len);
/* No more will come: gives back memory that was held for growth. */
void output_settle(struct output *output);
bool output_is_truncated(const struct output *output);
/* Bytes of memory held. */
size_t output_held(const struct output *output);
/* Head, marker line if any was lost, tail; malloc'ed, the caller's. */
void output_text(const struct output *output, uint8_t **ret_text, size_t *ret_len);

#endif
