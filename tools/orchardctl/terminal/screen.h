/* screen.h - output on its way to the terminal, as fast as that takes it. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_SCREEN_H
#define ORCHARDCTL_TERMINAL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

struct screen {
	int fd; /* non-blocking, not owned */
	char *bytes; /* owned */
	size_t at, len, size; /* [at, len) waits */
	bool broken; /* the terminal is gone: what is written is dropped */
};

void screen_init(struct screen *screen, int fd);
void screen_fini(struct screen *screen);
void screen_write(struct screen *screen, const void *data, size_t len);
/* Writes what can be written now. */
void screen_push(struct screen *screen);
size_t screen_waiting(const struct screen *screen);
/* Until all is written, stop_fd is readable, or nothing moves for so long. */
void screen_drain(struct screen *screen, int stop_fd, int silence_ms);

#endif
