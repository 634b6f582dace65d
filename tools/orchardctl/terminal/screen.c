/* screen.c - a buffer before a descriptor that does not block. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/screen.h"

#include "base/alloc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
screen_init(struct screen *screen, int fd)
{
	*screen = (struct screen){ .fd = fd };
}

void
screen_fini(struct screen *screen)
{
	free(screen->bytes);
	screen->bytes = NULL;
}

size_t
screen_waiting(const struct screen *screen)
{
	return screen->len - screen->at;
}

void
screen_push(struct screen *screen)
{
	while (screen->at < screen->len && !screen->broken) {
		ssize_t n = write(screen->fd, screen->bytes + screen->at, screen->len - screen->at);

		if (n > 0)
			screen->at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n < 0 && errno != EINTR)
			screen->broken = true;
	}
	screen->at = screen->len = 0;
}

void
screen_write(struct screen *screen, const void *data, size_t len)
{
	if (screen->at > 0 && screen->len + len > screen->size) {
		memmove(screen->bytes, screen->bytes + screen->at, screen_waiting(screen));
		screen->len -= screen->at;
		screen->at = 0;
	}
	if (screen->len + len > screen->size) {
		screen->size = 2 * (screen->len + len);
		screen->bytes = alloc_resize(screen->bytes, screen->size);
	}
	memcpy(screen->bytes + screen->len, data, len);
	screen->len += len;
	screen_push(screen);
}

void
screen_drain(struct screen *screen, int stop_fd, int silence_ms)
{
	struct pollfd fds[] = { { .fd = screen->fd, .events = POLLOUT }, { .fd = stop_fd, .events = POLLIN } };

	while (screen_waiting(screen) > 0 && poll(fds, 2, silence_ms) > 0 && fds[1].revents == 0)
		screen_push(screen);
}
