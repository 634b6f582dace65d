/* noise.c - holds the first bytes only as long as they may still become the two lines. */
/* SPDX-License-Identifier: MIT */
#include "agent/noise.h"

#include "agent/output.h"

#include <string.h>

static const char noise_begin[] = "bash: cannot set terminal process group (";
static const char noise_end_text[] = "): Inappropriate ioctl for device\nbash: no job control in this shell\n";

enum noise_match { NOISE_NO, NOISE_MAYBE, NOISE_YES };

void
noise_init(struct noise *noise, bool expected)
{
	*noise = (struct noise){ .decided = !expected };
}

/* Both lines, between them a number of at most 11 characters. */
static enum noise_match
noise_compare(const char *text, size_t len)
{
	size_t begin = sizeof noise_begin - 1, end = sizeof noise_end_text - 1, digits, part;

	if (len <= begin)
		return memcmp(text, noise_begin, len) == 0 ? NOISE_MAYBE : NOISE_NO;
	if (memcmp(text, noise_begin, begin) != 0)
		return NOISE_NO;
	for (digits = 0; begin + digits < len && digits < 12; digits++)
		if (text[begin + digits] != '-' && (text[begin + digits] < '0' || text[begin + digits] > '9'))
			break;
	if (begin + digits == len)
		return digits < 12 ? NOISE_MAYBE : NOISE_NO;
	part = len - begin - digits;
	if (memcmp(text + begin + digits, noise_end_text, part < end ? part : end) != 0)
		return NOISE_NO;
	return part < end ? NOISE_MAYBE : NOISE_YES;
}

void
noise_pass(struct noise *noise, struct output *output, const void *data, size_t len)
{
	const char *from = data;

	while (!noise->decided && len > 0) {
		enum noise_match match;

		noise->held[noise->len++] = *from++;
		len--;
		match = noise_compare(noise->held, noise->len);
		if (match == NOISE_YES) {
			noise->decided = true;
			noise->len = 0;
		} else if (match == NOISE_NO) {
			noise_end(noise, output);
		}
	}
	if (len > 0)
		output_add(output, from, len);
}

void
noise_end(struct noise *noise, struct output *output)
{
	noise->decided = true;
	output_add(output, noise->held, noise->len);
	noise->len = 0;
}
