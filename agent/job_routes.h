/* job_routes.h - the routes below /jobs/{id}. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_JOB_ROUTES_H
#define ORCHARD_AGENT_JOB_ROUTES_H

struct event_base;
struct http_exchange;
struct journal;

/* rest: what stands behind "/jobs/". */
void job_routes_serve(
	struct event_base *base, struct journal *journal, struct http_exchange *exchange, const char *rest);

#endif
