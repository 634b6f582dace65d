/* stream.c - reading pipes in pieces. */
/* SPDX-License-Identifier: MIT */
#include "agent/stream.h"

#include "base/alloc.h"
#include "agent/hold.h"
#include "agent/output.h"
#include "base/clock.h"

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
	struct event *again; /* the reader has taken something, or its time is up; NULL: nobody is waited for */
	struct output *output; /* NULL: dropped */
	bool finishing;
	size_t rest; /* that was in the pipe when the command ended */
	void (*on_finished)(void *arg);
	void *arg;
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
	if (stream->output != NULL)
		output_add(stream->output, piece, (size_t)got);
	return (size_t)got;
}

static size_t
stream_room(const struct stream *stream)
{
	return stream->output != NULL ? output_room(stream->output) : SIZE_MAX;
}

/* Not before the reader has taken something, or is waited for no more. */
static void
stream_pause(struct stream *stream)
{
	struct timeval left = clock_tv(hold_left_ms(stream->output->hold));

	event_del(stream->readable);
	event_add(stream->again, &left);
}

static size_t
stream_waiting(const struct stream *stream)
{
	int waiting = 0;

	return stream->ended || ioctl(stream->fd, FIONREAD, &waiting) < 0 || waiting < 0 ? 0 : (size_t)waiting;
}

static void
stream_read_rest(struct stream *stream, bool into_room)
{
	while (stream->rest > 0) {
		size_t room = into_room ? stream_room(stream) : stream->rest, got = 0;

		if (room == 0)
			return;
		got = stream_read(stream, room < stream->rest ? room : stream->rest);
		if (got == 0)
			stream->rest = 0;
		else
			stream->rest -= got;
	}
}

static bool
stream_is_finished(struct stream *stream)
{
	stream_read_rest(stream, true);
	if (stream->rest == 0 && !output_is_owed(stream->output))
		return true;
	stream_pause(stream);
	return false;
}

static void
stream_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;
	size_t room = stream_room(stream);

	(void)fd;
	(void)what;
	if (room == 0) {
		stream_pause(stream);
		return;
	}
	stream_read(stream, room);
	if (!stream->ended)
		return;
	event_del(stream->readable);
	if (stream->output == NULL)
		stream_free(stream);
}

static void
stream_on_again(evutil_socket_t fd, short what, void *arg)
{
	struct stream *stream = arg;

	(void)fd;
	(void)what;
	if (!stream->finishing)
		event_add(stream->readable, NULL);
	else if (stream_is_finished(stream))
		stream->on_finished(stream->arg);
}

static void
stream_on_taken(void *arg)
{
	struct stream *stream = arg;

	if (event_pending(stream->again, EV_TIMEOUT, NULL))
		event_active(stream->again, EV_TIMEOUT, 0);
}

struct stream *
stream_create(struct event_base *base, int fd, struct output *output)
{
	struct stream *stream = alloc_zero(1, sizeof *stream);

	*stream = (struct stream){ .fd = fd, .output = output };
	stream->readable = event_new(base, fd, EV_READ | EV_PERSIST, stream_on_readable, stream);
	if (output->hold != NULL) {
		stream->again = evtimer_new(base, stream_on_again, stream);
		output->on_taken = stream_on_taken;
		output->on_taken_arg = stream;
	}
	if (stream->readable == NULL || (output->hold != NULL && stream->again == NULL) ||
		event_add(stream->readable, NULL) < 0) {
		stream_free(stream);
		return NULL;
	}
	return stream;
}

void
stream_collect_rest(struct stream *stream)
{
	if (!stream->finishing)
		stream->rest = stream_waiting(stream);
	stream_read_rest(stream, false);
}

bool
stream_finish(struct stream *stream, void (*on_finished)(void *arg), void *arg)
{
	stream->rest = stream_waiting(stream);
	stream->finishing = true;
	stream->on_finished = on_finished;
	stream->arg = arg;
	if (stream->again != NULL)
		return stream_is_finished(stream);
	stream_read_rest(stream, false);
	return true;
}

static void
stream_forget_reader(struct stream *stream)
{
	if (stream->again == NULL)
		return;
	event_free(stream->again);
	stream->again = NULL;
	if (stream->output != NULL)
		stream->output->on_taken = NULL;
}

void
stream_drop(struct stream *stream)
{
	stream_forget_reader(stream);
	stream->output = NULL;
	stream_read(stream, STREAM_PIECE);
	if (stream->ended)
		stream_free(stream);
	else
		event_add(stream->readable, NULL);
}

void
stream_free(struct stream *stream)
{
	stream_forget_reader(stream);
	if (stream->readable != NULL)
		event_free(stream->readable);
	close(stream->fd);
	free(stream);
}
