/*
 * expiry.h - when a sandbox's time is over, and which rule says so: pure, over its record.
 *
 * The reaper takes what is over; whoever shows a sandbox tells the same moment
 * beforehand. All moments are of the boot clock, which nobody can set.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_EXPIRY_H
#define ORCHARD_DOMAIN_EXPIRY_H

#include "ipc/sandbox_table.h"

#include <stdbool.h>
#include <stdint.h>

struct config;

/* In the order of the metrics METRIC_REAPED_x. */
enum expiry_rule {
	EXPIRY_TTL,
	EXPIRY_PENDING,
	EXPIRY_HEARTBEAT,
	EXPIRY_IDLE,
	EXPIRY_FAILED,
	EXPIRY_DOUBTFUL,
	EXPIRY_RULES,
	EXPIRY_NEVER = EXPIRY_RULES
};

struct expiry_limits {
	int64_t ttl_ms, idle_timeout_ms; /* of a sandbox that names none; idle 0: off */
	bool heartbeat; /* heartbeat_cleanup_enabled */
	int64_t heartbeat_timeout_ms;
	int64_t pending_buffer_ms;
	int64_t failed_keep_ms;
	int64_t served_since_ms; /* before that nobody could send a heartbeat or a command (server_life.h) */
};

struct expiry {
	enum expiry_rule rule; /* which takes it first if nothing happens till then; EXPIRY_NEVER: none */
	int64_t at_ms; /* may be past, or before the boot; INT64_MAX: never */
};

/* What the settings say now. */
struct expiry_limits expiry_limits(const struct config *config, int64_t served_since_ms);
/* busy: commands of it are queued or running, or terminals open: a sign of life that lasts. The ttl ends it nevertheless. */
struct expiry expiry_of(const struct sandbox_record *record, const struct expiry_limits *limits, bool busy);

/* The times it has: its own, or the server's. idle 0: off. */
int64_t expiry_ttl_ms(const struct sandbox_record *record, const struct expiry_limits *limits);
int64_t expiry_idle_ms(const struct sandbox_record *record, const struct expiry_limits *limits);

/* "ttl", "pending"...; NULL: EXPIRY_NEVER. */
const char *expiry_rule_name(enum expiry_rule rule);

#endif
