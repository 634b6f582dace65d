/*
 * tty.h - the terminal that orchardctl runs in: raw while a remote program has it, and as before on every way out.
 *
 * It is opened anew, so that not to block is nobody's business but ours: the flags of descriptors 0 and 1 are shared
 * with the shell. A crash puts the settings back as well (tty_raw() installs handlers that do just that).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_TTY_H
#define ORCHARDCTL_TERMINAL_TTY_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct err;

struct tty {
	int in, out; /* ours, non-blocking */
	struct termios saved;
	bool raw;
};

/* ERR_INVALID: stdin or stdout is no terminal. */
int tty_open(struct tty *tty, struct err *err) MUSTCHECK;
/* Restores and closes; fine after a failed tty_open(). */
void tty_close(struct tty *tty);
int tty_raw(struct tty *tty, struct err *err) MUSTCHECK;
void tty_restore(struct tty *tty);
void tty_size(const struct tty *tty, unsigned *ret_rows, unsigned *ret_cols);
/* Undoes what a program that was cut off may have left: other screen, mouse, hidden cursor, colours. */
void tty_reset(struct tty *tty);

#endif
