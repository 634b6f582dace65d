/* test_expiry.c - when a sandbox's time is over, and by which rule. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/expiry.h"
#include "conf/config.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { S = 1000, HOUR = 3600 * S, NOW = 100 * HOUR };

static const struct expiry_limits usual = {
	.ttl_ms = 2 * HOUR,
	.heartbeat = true,
	.heartbeat_timeout_ms = 180 * S,
	.pending_buffer_ms = 600 * S,
	.failed_keep_ms = 600 * S,
};

struct expiry_case {
	const char *what;
	struct sandbox_record record;
	bool busy;
	enum expiry_rule rule;
	int64_t at_ms;
};

/* What a case leaves out, complete() fills in: made at NOW, ready 10 s later, with the server's times. */
enum { OFF = -2 };
#define PENDING .status = SANDBOX_PENDING, .create_timeout_s = 60
#define READY   .status = SANDBOX_READY
#define FAILED  .status = SANDBOX_FAILED

static const struct expiry_case cases[] = {
	{ "ttl of the server", { READY }, false, EXPIRY_TTL, NOW + 2 * HOUR },
	{ "ttl of its own", { READY, .ttl_ms = 5 * S }, false, EXPIRY_TTL, NOW + 5 * S },
	{ "ttl whatever it does", { READY, .ttl_ms = 5 * S }, true, EXPIRY_TTL, NOW + 5 * S },
	{ "ttl from a later patch", { READY, .ttl_ms = 5 * S, .ttl_from_ms = NOW + 9 * S }, false, EXPIRY_TTL,
		NOW + 14 * S },
	{ "ttl while pending", { PENDING, .ttl_ms = 5 * S }, false, EXPIRY_TTL, NOW + 5 * S },
	{ "ttl when failed", { FAILED, .ttl_ms = 5 * S }, false, EXPIRY_TTL, NOW + 5 * S },
	{ "ttl when paused", { .status = SANDBOX_PAUSED }, false, EXPIRY_TTL, NOW + 2 * HOUR },
	{ "pending", { PENDING }, false, EXPIRY_PENDING, NOW + 660 * S },
	{ "pending, with heartbeats", { PENDING, .heartbeat_ms = NOW }, false, EXPIRY_PENDING, NOW + 660 * S },
	{ "pending is not idle", { PENDING, .idle_timeout_ms = S }, false, EXPIRY_PENDING, NOW + 660 * S },
	{ "unschedulable", { .status = SANDBOX_UNSCHEDULABLE, .create_timeout_s = 60 }, false, EXPIRY_PENDING,
		NOW + 660 * S },
	{ "ready is never pending", { READY, .create_timeout_s = 1 }, false, EXPIRY_TTL, NOW + 2 * HOUR },
	{ "failed", { FAILED }, false, EXPIRY_FAILED, NOW + 600 * S },
	{ "failed late", { FAILED, .status_ms = NOW + HOUR }, false, EXPIRY_FAILED, NOW + HOUR + 600 * S },
	{ "failed, with heartbeats", { FAILED, .heartbeat_ms = 1 }, false, EXPIRY_FAILED, NOW + 600 * S },
	{ "no heartbeat ever", { READY, .activity_ms = 1 }, false, EXPIRY_TTL, NOW + 2 * HOUR },
	{ "heartbeat", { READY, .heartbeat_ms = NOW + 20 * S }, false, EXPIRY_HEARTBEAT, NOW + 200 * S },
	{ "heartbeat before it was ready", { READY, .heartbeat_ms = NOW + 1 }, false, EXPIRY_HEARTBEAT,
		NOW + 190 * S },
	{ "heartbeat, and used later", { READY, .heartbeat_ms = NOW + 20 * S, .activity_ms = NOW + 60 * S }, false,
		EXPIRY_HEARTBEAT, NOW + 240 * S },
	{ "heartbeat, and a command runs", { READY, .heartbeat_ms = NOW + 20 * S }, true, EXPIRY_TTL,
		NOW + 2 * HOUR },
	{ "idle", { READY, .idle_timeout_ms = 90 * S }, false, EXPIRY_IDLE, NOW + 100 * S },
	{ "idle since a command", { READY, .idle_timeout_ms = 90 * S, .activity_ms = NOW + HOUR }, false,
		EXPIRY_IDLE, NOW + HOUR + 90 * S },
	{ "idle, and a command runs", { READY, .idle_timeout_ms = 90 * S }, true, EXPIRY_TTL, NOW + 2 * HOUR },
	{ "heartbeats are no use", { READY, .idle_timeout_ms = 90 * S, .heartbeat_ms = NOW + 50 * S }, false,
		EXPIRY_IDLE, NOW + 100 * S },
	{ "idle switched off by itself", { READY, .idle_timeout_ms = OFF }, false, EXPIRY_TTL, NOW + 2 * HOUR },
	{ "torn", { .status = SANDBOX_DOUBTFUL }, true, EXPIRY_DOUBTFUL, INT64_MIN },
	{ "being deleted", { .status = SANDBOX_DELETING, .ttl_ms = 1 }, false, EXPIRY_NEVER, INT64_MAX },
};

static void
set_if_left_out(int64_t *field, int64_t value)
{
	if (*field == 0)
		*field = value;
}

static struct sandbox_record
complete(const struct sandbox_record *given)
{
	struct sandbox_record record = *given;

	set_if_left_out(&record.created_ms, NOW);
	set_if_left_out(&record.ttl_from_ms, NOW);
	set_if_left_out(&record.status_ms, NOW);
	set_if_left_out(&record.ttl_ms, SANDBOX_TIME_DEFAULT);
	set_if_left_out(&record.idle_timeout_ms, SANDBOX_TIME_DEFAULT);
	if (record.status == SANDBOX_READY) {
		set_if_left_out(&record.ready_ms, NOW + 10 * S);
		set_if_left_out(&record.activity_ms, NOW + 10 * S);
	}
	if (record.idle_timeout_ms == OFF)
		record.idle_timeout_ms = 0;
	return record;
}

static void
check(const struct expiry_case *c, const struct expiry_limits *limits)
{
	struct sandbox_record record = complete(&c->record);
	struct expiry expiry = expiry_of(&record, limits, c->busy);

	if (expiry.rule != c->rule || expiry.at_ms != c->at_ms)
		fail_msg("%s: rule %d at %" PRId64 ", not %d at %" PRId64, c->what, (int)expiry.rule,
			expiry.at_ms - NOW, (int)c->rule, c->at_ms - NOW);
}

static void
test_each_rule(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		check(&cases[i], &usual);
}

/* All of it shifted by a day: only differences count. */
static void
test_no_rule_knows_what_day_it_is(void **state)
{
	const int64_t days[] = { -24 * HOUR, 24 * HOUR };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t day = 0; day < 2; day++) {
			struct expiry_case c = cases[i];

			c.record = complete(&cases[i].record);
			int64_t *const moments[] = { &c.record.created_ms, &c.record.ttl_from_ms,
				&c.record.status_ms, &c.record.ready_ms, &c.record.activity_ms,
				&c.record.heartbeat_ms };

			c.record = complete(&cases[i].record);
			for (size_t m = 0; m < sizeof moments / sizeof *moments; m++)
				if (*moments[m] > 1)
					*moments[m] += days[day];
			if (c.record.idle_timeout_ms == 0)
				c.record.idle_timeout_ms = OFF;
			if (c.at_ms != INT64_MAX && c.at_ms != INT64_MIN)
				c.at_ms += days[day];
			check(&c, &usual);
		}
	}
}

static void
test_after_an_outage_a_full_time_is_left(void **state)
{
	const struct expiry_case away[] = {
		{ "heartbeat", { READY, .heartbeat_ms = NOW + 20 * S }, false, EXPIRY_HEARTBEAT,
			NOW + HOUR + 180 * S },
		{ "idle", { READY, .idle_timeout_ms = 90 * S }, false, EXPIRY_IDLE, NOW + HOUR + 90 * S },
		{ "ttl is no matter of signs", { READY, .ttl_ms = 5 * S }, false, EXPIRY_TTL, NOW + 5 * S },
		{ "a heartbeat since", { READY, .heartbeat_ms = NOW + HOUR + 20 * S }, false, EXPIRY_HEARTBEAT,
			NOW + HOUR + 200 * S },
	};
	struct expiry_limits limits = usual;

	(void)state;
	limits.served_since_ms = NOW + HOUR;
	for (size_t i = 0; i < sizeof away / sizeof *away; i++)
		check(&away[i], &limits);
}

static void
test_the_settings_of_now_count(void **state)
{
	const struct config config = {
		.sandbox_ttl_hours = 0.5,
		.idle_timeout_seconds = 7,
		.heartbeat_cleanup_enabled = true,
		.heartbeat_timeout_seconds = 8,
		.pending_timeout_buffer_seconds = 9,
		.failed_keep_seconds = 11,
	};
	const struct expiry_case made[] = {
		{ "ttl", { READY, .idle_timeout_ms = OFF }, false, EXPIRY_TTL, NOW + HOUR / 2 },
		{ "idle", { READY }, false, EXPIRY_IDLE, NOW + 17 * S },
		{ "pending", { PENDING }, false, EXPIRY_PENDING, NOW + 69 * S },
		{ "failed", { FAILED }, false, EXPIRY_FAILED, NOW + 11 * S },
		{ "heartbeat", { READY, .heartbeat_ms = NOW, .idle_timeout_ms = OFF }, false, EXPIRY_HEARTBEAT,
			NOW + 18 * S },
	};
	struct expiry_limits limits = expiry_limits(&config, 0);

	(void)state;
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		check(&made[i], &limits);
	limits.heartbeat = false;
	check(&(struct expiry_case){ "switched off", { READY, .heartbeat_ms = NOW, .idle_timeout_ms = OFF }, false,
		      EXPIRY_TTL, NOW + HOUR / 2 },
		&limits);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_rule),
		cmocka_unit_test(test_no_rule_knows_what_day_it_is),
		cmocka_unit_test(test_after_an_outage_a_full_time_is_left),
		cmocka_unit_test(test_the_settings_of_now_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
