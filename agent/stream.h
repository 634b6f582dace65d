/*
 * stream.h - one output pipe of a command: collected while it runs, then drained.
 *
 * A background process may hold the pipe for days. It is read to nowhere until
 * its last writer closes it, since closing our end would kill the writer with
 * SIGPIPE. Each turn of the loop reads one bounded piece.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_STREAM_H
#define ORCHARD_AGENT_STREAM_H

#include "base/cleanup.h"

struct event_base;
struct noise;
struct output;
struct stream;

/* Takes fd. noise may be NULL; it and output must live until drop or free. NULL: out of memory. */
struct stream *stream_create(struct event_base *base, int fd, struct output *output, struct noise *noise) MUSTCHECK;
/* Reads what is in the pipe at this moment, no more, however fast others write. */
void stream_collect_rest(struct stream *stream);
/* Nobody wants the rest: the stream drains and frees itself at its end. */
void stream_drop(struct stream *stream);
/* Closes the pipe at once. */
void stream_free(struct stream *stream);

#endif
