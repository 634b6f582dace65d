/* stream.c - pipes and files that may block for ever, read and written so that a signal is heard meanwhile. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/copy.h"

#include "orchardctl/client/signals.h"
#include "orchardctl/command.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

/* Until fd is ready; false: a signal came. */
static bool
await(const struct ctl *ctl, int fd, short events)
{
	struct pollfd fds[] = { { .fd = fd, .events = events }, { .fd = ctl->signals->fd, .events = POLLIN } };

	while (poll(fds, 2, -1) < 0 && errno == EINTR)
		;
	if (fds[1].revents == 0)
		return true;
	signals_take(ctl->signals);
	return false;
}

int
stream_write(const struct ctl *ctl, int fd, const void *data, size_t len)
{
	const char *bytes = data;

	while (len > 0) {
		/* More than this a pipe that is ready may still block on. */
		size_t piece = len < PIPE_BUF ? len : PIPE_BUF;
		ssize_t n;

		if (!await(ctl, fd, POLLOUT)) {
			errno = EINTR;
			return -1;
		}
		n = write(fd, bytes, piece);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

ssize_t
stream_read(const struct ctl *ctl, int fd, void *buf, size_t size)
{
	for (;;) {
		ssize_t n;

		if (!await(ctl, fd, POLLIN)) {
			errno = EINTR;
			return -1;
		}
		n = read(fd, buf, size);
		if (n >= 0 || (errno != EAGAIN && errno != EINTR))
			return n;
	}
}
