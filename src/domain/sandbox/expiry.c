/*
 * expiry.c - the rules.
 *
 *   ttl        its time to live is over, whatever it does
 *   pending    it had its timeout and more to become ready
 *   heartbeat  its client sent heartbeats and went silent
 *   idle       nobody used it for its idle timeout
 *   failed     it failed, and there was time to read why
 *   doubtful   its record was torn by a killed writer
 *
 * While the server was away nobody could send a heartbeat or a command: both
 * times count from its return at the earliest.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/expiry.h"
#include "conf/config.h"

#include <stddef.h>

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static void
bring_forward(struct expiry *expiry, enum expiry_rule rule, int64_t at_ms)
{
	if (at_ms < expiry->at_ms)
		*expiry = (struct expiry){ .rule = rule, .at_ms = at_ms };
}

struct expiry_limits
expiry_limits(const struct config *config, int64_t served_since_ms)
{
	return (struct expiry_limits){
		.ttl_ms = (int64_t)(config->sandbox_ttl_hours * 3600 * 1000),
		.idle_timeout_ms = config->idle_timeout_seconds * 1000,
		.heartbeat = config->heartbeat_cleanup_enabled,
		.heartbeat_timeout_ms = config->heartbeat_timeout_seconds * 1000,
		.pending_buffer_ms = config->pending_timeout_buffer_seconds * 1000,
		.failed_keep_ms = config->failed_keep_seconds * 1000,
		.served_since_ms = served_since_ms,
	};
}

int64_t
expiry_ttl_ms(const struct sandbox_record *record, const struct expiry_limits *limits)
{
	return record->ttl_ms != SANDBOX_TIME_DEFAULT ? record->ttl_ms : limits->ttl_ms;
}

int64_t
expiry_idle_ms(const struct sandbox_record *record, const struct expiry_limits *limits)
{
	return record->idle_timeout_ms != SANDBOX_TIME_DEFAULT ? record->idle_timeout_ms : limits->idle_timeout_ms;
}

static void
expiry_of_ready(const struct sandbox_record *record, const struct expiry_limits *limits, struct expiry *expiry)
{
	int64_t used_ms = later(later(record->ready_ms, record->activity_ms), limits->served_since_ms);
	int64_t idle_ms = expiry_idle_ms(record, limits);

	if (limits->heartbeat && record->heartbeat_ms > 0)
		bring_forward(expiry, EXPIRY_HEARTBEAT,
			later(used_ms, record->heartbeat_ms) + limits->heartbeat_timeout_ms);
	if (idle_ms > 0)
		bring_forward(expiry, EXPIRY_IDLE, used_ms + idle_ms);
}

struct expiry
expiry_of(const struct sandbox_record *record, const struct expiry_limits *limits, bool busy)
{
	struct expiry expiry = { .rule = EXPIRY_NEVER, .at_ms = INT64_MAX };

	if (record->status == SANDBOX_DOUBTFUL)
		return (struct expiry){ .rule = EXPIRY_DOUBTFUL, .at_ms = INT64_MIN };
	if (record->status == SANDBOX_DELETING)
		return expiry;
	bring_forward(&expiry, EXPIRY_TTL, record->ttl_from_ms + expiry_ttl_ms(record, limits));
	if (sandbox_is_being_made(record))
		bring_forward(&expiry, EXPIRY_PENDING,
			record->created_ms + record->create_timeout_s * 1000 + limits->pending_buffer_ms);
	else if (record->status == SANDBOX_FAILED)
		bring_forward(&expiry, EXPIRY_FAILED, record->status_ms + limits->failed_keep_ms);
	else if (record->status == SANDBOX_READY && !busy)
		expiry_of_ready(record, limits, &expiry);
	return expiry;
}

const char *
expiry_rule_name(enum expiry_rule rule)
{
	static const char *const names[EXPIRY_RULES] = {
		[EXPIRY_TTL] = "ttl",
		[EXPIRY_PENDING] = "pending",
		[EXPIRY_HEARTBEAT] = "heartbeat",
		[EXPIRY_IDLE] = "idle",
		[EXPIRY_FAILED] = "failed",
		[EXPIRY_DOUBTFUL] = "doubtful",
	};

	return rule < EXPIRY_RULES ? names[rule] : NULL;
}
