/*
 * stream.h - one output pipe of a command: collected while it runs, then drained.
 *
 * A background process may hold the pipe for days. It is read to nowhere until
 * its last writer closes it, since closing our end would kill the writer with
 * SIGPIPE. Each turn of the loop reads one bounded piece, and none while the output
 * has no room: a command that waits for a reader stops in its write.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_STREAM_H
#define ORCHARD_AGENT_STREAM_H

#include "base/cleanup.h"

#include <stdbool.h>

struct event_base;
struct output;
struct stream;

/* Takes fd. output must live until drop or free. NULL: out of memory. */
struct stream *stream_create(struct event_base *base, int fd, struct output *output) MUSTCHECK;
/* Reads what is in the pipe at this moment, no more, however fast others write, whether there is room or not. */
void stream_collect_rest(struct stream *stream);
/*
 * The command has ended: the same, but the reader of the output is waited for. False: it has not taken enough;
 * on_finished says when it has, or is waited for no more. It may drop or free the stream.
 */
bool stream_finish(struct stream *stream, void (*on_finished)(void *arg), void *arg);
/* Nobody wants the rest: the stream drains and frees itself at its end. */
void stream_drop(struct stream *stream);
/* Closes the pipe at once. */
void stream_free(struct stream *stream);

#endif
