/*
 * job_feed.h - a job followed live: how it stands, what it writes, how it ends.
 *
 * A feed belongs to whoever listens in this process; the job may be driven by any
 * other. It asks for the next piece only when the last one was taken, so a slow listener
 * costs a piece of memory and nobody else's time; but a command that was told to waits for it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_FEED_H
#define ORCHARD_DOMAIN_JOB_FEED_H

#include "base/cleanup.h"
#include "domain/job/job_output.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct job_feed;
struct json_object;
struct service;

struct job_feed_piece {
	enum job_stream stream;
	int64_t offset; /* of its first byte; more than the last position: those between are not kept */
	const void *data;
	size_t len;
	int64_t next[JOB_STREAMS]; /* where to go on after it */
};

/* None of these but `end` may close the feed. */
struct job_feed_ops {
	/* How it stands: first of all, and when that changes. queue_position: UINT32_MAX: not queued. */
	void (*status)(const char *status, uint32_t queue_position, void *arg);
	void (*piece)(const struct job_feed_piece *piece, void *arg);
	/* Pieces have come; no more do before job_feed_more(), which may be called from here. */
	void (*pause)(void *arg);
	/* Nothing has happened for a while. */
	void (*quiet)(void *arg);
	/*
	 * Over, and gone. job: it has ended and all that is kept was told; as stored, without outputs. Else why:
	 * ERR_NOT_FOUND, or what keeps this process from going on (ERR_AGENT_UNREACHABLE, ERR_UNAVAILABLE):
	 * following it again from the last position may work.
	 */
	void (*end)(struct json_object *job, const struct err *why, void *arg);
};

/* Calls nothing before it returns. ERR_BUSY: too many wait here, or follow jobs of that sandbox. */
int
job_feed_start(struct service *service, const char *tenant, const char *job_id, const int64_t offset[JOB_STREAMS],
	const struct job_feed_ops *ops, void *arg, struct job_feed **ret_feed, struct err *err) MUSTCHECK;
void job_feed_more(struct job_feed *feed);
/* The listener takes its time: job_feed_more() may be long in coming. */
void job_feed_rest(struct job_feed *feed);
/* Does the command wait for the listener? */
bool job_feed_holds(const struct job_feed *feed);
void job_feed_close(struct job_feed *feed);

#endif
