/* output_poll.h - GET /jobs/{id}/output: what a job has written from an offset on, now or when there is more. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_OUTPUT_POLL_H
#define ORCHARD_AGENT_OUTPUT_POLL_H

struct event_base;
struct http_exchange;
struct job;

/*
 * Reads the query and answers: now, or as soon as a stream that is asked for has a byte at its offset, the job
 * has ended, or the time of the query is over. A client that leaves only takes its own waiting with it.
 */
void output_poll_attach(struct event_base *base, struct http_exchange *exchange, struct job *job);

#endif
