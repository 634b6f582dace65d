/*
 * rules.c - the rules, in the order in which they are asked.
 *
 *   doubtful   its record was torn by a killed writer
 *   ttl        its time to live is over, whatever it does
 *   pending    it had its timeout and more to become ready
 *   heartbeat  its client sent heartbeats and went silent
 *   idle       nobody used it for its idle_timeout
 *
 * All ages are of the boot clock; one from the future counts as young.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/rules.h"

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static bool
heartbeat_is_over(const struct sandbox_record *record, const struct reap_limits *limits, int64_t now_ms)
{
	int64_t sign = later(record->heartbeat_ms, record->activity_ms);

	return limits->heartbeat && record->heartbeat_ms > 0 && now_ms - sign >= limits->heartbeat_timeout_ms;
}

static bool
idle_is_over(const struct sandbox_record *record, int64_t now_ms)
{
	int64_t sign = later(record->ready_ms, record->activity_ms);

	return record->idle_timeout_ms > 0 && now_ms - sign >= record->idle_timeout_ms;
}

const char *
reap_rule(const struct sandbox_record *record, const struct reap_limits *limits, bool busy, int64_t now_ms)
{
	int64_t age_ms = now_ms - record->created_ms;

	if (record->status == SANDBOX_DOUBTFUL)
		return "doubtful";
	if (record->status == SANDBOX_DELETING)
		return NULL;
	if (record->ttl_ms > 0 && now_ms - record->ttl_from_ms >= record->ttl_ms)
		return "ttl";
	if (record->status == SANDBOX_PENDING || record->status == SANDBOX_UNSCHEDULABLE)
		return age_ms - limits->pending_buffer_ms >= record->create_timeout_s * 1000 ? "pending" : NULL;
	if (record->status != SANDBOX_READY || busy)
		return NULL;
	if (heartbeat_is_over(record, limits, now_ms))
		return "heartbeat";
	return idle_is_over(record, now_ms) ? "idle" : NULL;
}
