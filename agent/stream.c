/* stream.c - reading pipes in pieces. */
/* SPDX-License-Identifier: MIT */
#include "agent/stream.h"

#include "base/alloc.h"
#include "agent/noise.h"
#include "agent/output.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { STREAM_PIECE = 64 << 10 };

struct stream {
	int fd;
	bool ended;
	struct event *readable;
	struct output *output; /* NULL: dropped */
	struct noise *noise;
};

/* One piece of at most max bytes; the count, 0 when there is nothing now or any more. */
static size_t
stream_read(struct stream *stream, size_t max)
{
	static char piece[STREAM_PIECE];
	ssize_t got;

	do {
		got = read(stream->fd, piece, max < sizeof piece ? max : sizeof piece);
	} while (got < 0 && errno == EINTR);
	if (got == 0 || (got < 0 && errno != EAGAIN))
		stream->ended = true;
	if (got <= 0)
		return 0;
	if (stream->output != NULL && stream->noise != NULL)
		noise_pass(stream->noise, stream->output, piece, (size_t)got);
	else if (stream->output != NULL)
		output_add(stream->output, piece, (size_t)got);
	return (size_t)got;
}

static void
stream_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;

	(void)fd;
	(void)what;
	stream_read(stream, STREAM_PIECE);
	if (!stream->ended)
		return;
	event_del(stream->readable);
	if (stream->output == NULL)
		stream_free(stream);
}

struct stream *
stream_create(struct event_base *base, int fd, struct output *output, struct noise *noise)
{
	struct stream *stream = alloc_zero(1, sizeof *stream);

	*stream = (struct stream){ .fd = fd, .output = output, .noise = noise };
	stream->readable = event_new(base, fd, EV_READ | EV_PERSIST, stream_on_readable, stream);
	if (stream->readable == NULL || event_add(stream->readable, NULL) < 0) {
		stream_free(stream);
		return NULL;
	}
	return stream;
}

void
stream_collect_rest(struct stream *stream)
{
	int waiting = 0;

	if (stream->ended || ioctl(stream->fd, FIONREAD, &waiting) < 0)
		return;
	while (waiting > 0) {
		size_t got = stream_read(stream, (size_t)waiting);

		if (got == 0)
			return;
		waiting -= (int)got;
	}
}

void
stream_drop(struct stream *stream)
{
	stream->output = NULL;
	stream->noise = NULL;
	if (stream->ended)
		stream_free(stream);
}

void
stream_free(struct stream *stream)
{
	if (stream->readable != NULL)
		event_free(stream->readable);
	close(stream->fd);
	free(stream);
}
