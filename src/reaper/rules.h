/* rules.h - when a sandbox's time is over: pure rules over its record. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REAPER_RULES_H
#define ORCHARD_REAPER_RULES_H

#include "ipc/sandbox_table.h"

#include <stdbool.h>
#include <stdint.h>

struct reap_limits {
	bool heartbeat; /* heartbeat_cleanup_enabled */
	int64_t heartbeat_timeout_ms;
	int64_t pending_buffer_ms;
};

/*
 * The rule that ends this sandbox now, or NULL. busy: commands of it are queued or running, which counts
 * as a sign of life; only the ttl ends it nevertheless.
 */
const char *
reap_rule(const struct sandbox_record *record, const struct reap_limits *limits, bool busy, int64_t now_ms);

#endif
