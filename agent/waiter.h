/* waiter.h - one request that waits for the end of a job. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_WAITER_H
#define ORCHARD_AGENT_WAITER_H

#include <stdint.h>

struct event_base;
struct http_exchange;
struct job;

#define WAITER_NO_LIMIT INT64_MAX

/*
 * Answers with the job: now if it has ended, else when it ends or limit_ms is
 * over. A client that leaves only takes its own waiting with it.
 */
void waiter_attach(struct event_base *base, struct http_exchange *exchange, struct job *job, int64_t limit_ms);

#endif
