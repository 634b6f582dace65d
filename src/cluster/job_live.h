/*
 * job_live.h - looks through what Redis names as this server's live jobs, now and then and when asked to.
 *
 * Whoever ends a job takes it out there; one that died in between, or could not tell, leaves it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_JOB_LIVE_H
#define ORCHARD_CLUSTER_JOB_LIVE_H

#include <stdint.h>

struct event_base;
struct job_live;
struct redis;

/* All borrowed, as long as it lives. */
struct job_live_options {
	struct event_base *base;
	struct redis *redis;
	const char *prefix; /* of keys in Redis */
	const char *replica; /* this server's name among the others */
	uint32_t deadline_ms; /* of an answer; 0: 1500 */
	void (*found)(void *ctx, const char *job_id); /* whatever Redis says, so perhaps no id at all */
	void *ctx;
};
struct job_live *job_live_new(const struct job_live_options *options);
void job_live_free(struct job_live *live);
/* Redis is back: looks soon. */
void job_live_look(struct job_live *live);
/* That one is not live. */
void job_live_drop(struct job_live *live, const char *job_id);

#endif
