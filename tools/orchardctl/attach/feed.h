/*
 * feed.h - a descriptor into the stdin of a job, each byte once and in order, and its end.
 *
 * One piece is under way at a time. When its answer is lost the job is asked how much it has got.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_ATTACH_FEED_H
#define ORCHARDCTL_ATTACH_FEED_H

#include "orchardctl/client/client.h"

#include <poll.h>

enum feed_state { FEED_READING, FEED_SENDING, FEED_ASKING, FEED_CLOSING, FEED_OVER };

struct feed {
	struct client *client;
	const char *job_id; /* borrowed */
	int fd; /* borrowed */
	/* Private. */
	enum feed_state state, before; /* before: what is done again after next_ms */
	int64_t sent; /* bytes that the job has got */
	int64_t next_ms;
	struct transfer *transfer;
	struct request request;
	struct answer answer;
	char *path;
	struct retry retry;
	size_t len, off; /* of data: what is not through yet */
	char data[64 << 10];
};

void feed_start(struct feed *feed);
void feed_fini(struct feed *feed);
/* Does what is due; call it before each client_step(). Returns for how long nothing will be, in milliseconds. */
int feed_go_on(struct feed *feed);
/* Whether it wants to read its descriptor. */
bool feed_wants(const struct feed *feed);
/* The descriptor is readable. */
void feed_on_readable(struct feed *feed);

#endif
