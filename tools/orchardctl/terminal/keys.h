/*
 * keys.h - what is typed, and the few keys that are for orchardctl itself: "~" at the beginning of a line.
 *
 * Pure. "~." ends, "~d" leaves the session running, "~^Z" suspends orchardctl, "~?" helps, "~~" is one "~"; before
 * anything else "~" is what it is.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_KEYS_H
#define ORCHARDCTL_TERMINAL_KEYS_H

#include <stdbool.h>
#include <stddef.h>

enum keys_wish { KEYS_NONE, KEYS_END, KEYS_LEAVE, KEYS_SUSPEND, KEYS_HELP };

struct keys {
	bool inside_line; /* something was typed since the last line end */
	bool tilde; /* held back: what follows tells what it means */
};

extern const char keys_help[];

/*
 * Takes typed bytes up to the first wish, which is in *ret_wish; returns how many. out gets what is to be sent, at
 * most one byte more than were taken.
 */
size_t keys_take(
	struct keys *keys, const char *typed, size_t len, char *out, size_t *ret_out_len, enum keys_wish *ret_wish);

#endif
