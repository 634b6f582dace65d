/* test_rules.c - when a sandbox's time is over. */
/* SPDX-License-Identifier: MIT */
#include "reaper/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SECOND = 1000, NOW = 1000 * SECOND };

static const struct reap_limits limits = {
	.heartbeat = true, .heartbeat_timeout_ms = 180 * SECOND, .pending_buffer_ms = 600 * SECOND
};

struct rule_case {
	const char *what;
	struct sandbox_record record;
	bool busy;
	const char *rule; /* NULL: it stays */
};

/* Made 100 s ago, ready 90 s ago, lives two hours. */
#define YOUNG                                                                                                      \
	.created_ms = NOW - 100 * SECOND, .ttl_from_ms = NOW - 100 * SECOND, .ttl_ms = 7200 * SECOND,              \
	.create_timeout_s = 60, .ready_ms = NOW - 90 * SECOND, .activity_ms = NOW - 90 * SECOND

static const struct rule_case cases[] = {
	{ "young and ready", { YOUNG, .status = SANDBOX_READY }, false, NULL },
	{ "torn", { .status = SANDBOX_DOUBTFUL }, false, "doubtful" },
	{ "torn and busy", { .status = SANDBOX_DOUBTFUL }, true, "doubtful" },
	{ "being deleted", { .status = SANDBOX_DELETING, .ttl_ms = 1 }, false, NULL },
	{ "ttl just not over", { .status = SANDBOX_READY, .ttl_from_ms = NOW - 4999, .ttl_ms = 5000 }, false,
		NULL },
	{ "ttl over", { .status = SANDBOX_READY, .ttl_from_ms = NOW - 5000, .ttl_ms = 5000 }, false, "ttl" },
	{ "ttl over and busy", { .status = SANDBOX_READY, .ttl_from_ms = NOW - 5000, .ttl_ms = 5000 }, true,
		"ttl" },
	{ "ttl over, failed", { .status = SANDBOX_FAILED, .ttl_from_ms = NOW - 5000, .ttl_ms = 5000 }, false,
		"ttl" },
	{ "ttl counted from a later patch",
		{ .status = SANDBOX_READY, .created_ms = 1, .ttl_from_ms = NOW - 10, .ttl_ms = 5000 }, false,
		NULL },
	{ "clock of the future", { .status = SANDBOX_READY, .ttl_from_ms = NOW + 9999, .ttl_ms = 5000 }, false,
		NULL },
	{ "pending within timeout and buffer", { YOUNG, .status = SANDBOX_PENDING }, false, NULL },
	{ "pending over its timeout, not its buffer",
		{ .status = SANDBOX_PENDING,
			.created_ms = NOW - 659 * SECOND,
			.create_timeout_s = 60,
			.ttl_from_ms = NOW,
			.ttl_ms = 7200 * SECOND },
		false, NULL },
	{ "pending too long",
		{ .status = SANDBOX_PENDING,
			.created_ms = NOW - 660 * SECOND,
			.create_timeout_s = 60,
			.ttl_from_ms = NOW,
			.ttl_ms = 7200 * SECOND },
		false, "pending" },
	{ "ready is never pending too long",
		{ .status = SANDBOX_READY,
			.created_ms = NOW - 900 * SECOND,
			.create_timeout_s = 60,
			.ttl_from_ms = NOW,
			.ttl_ms = 7200 * SECOND },
		false, NULL },
	{ "no heartbeat ever",
		{ .status = SANDBOX_READY, .ttl_from_ms = NOW, .ttl_ms = 7200 * SECOND, .activity_ms = 1 }, false,
		NULL },
	{ "heartbeat stopped",
		{ .status = SANDBOX_READY,
			.ttl_from_ms = NOW,
			.ttl_ms = 7200 * SECOND,
			.heartbeat_ms = NOW - 180 * SECOND },
		false, "heartbeat" },
	{ "heartbeat stopped but a command runs",
		{ .status = SANDBOX_READY,
			.ttl_from_ms = NOW,
			.ttl_ms = 7200 * SECOND,
			.heartbeat_ms = NOW - 180 * SECOND },
		true, NULL },
	{ "heartbeat stopped but it was just used",
		{ .status = SANDBOX_READY,
			.ttl_from_ms = NOW,
			.ttl_ms = 7200 * SECOND,
			.heartbeat_ms = NOW - 180 * SECOND,
			.activity_ms = NOW - SECOND },
		false, NULL },
	{ "heartbeat goes on",
		{ .status = SANDBOX_READY,
			.ttl_from_ms = NOW,
			.ttl_ms = 7200 * SECOND,
			.heartbeat_ms = NOW - 179 * SECOND },
		false, NULL },
	{ "idle", { YOUNG, .status = SANDBOX_READY, .idle_timeout_ms = 90 * SECOND }, false, "idle" },
	{ "idle but busy", { YOUNG, .status = SANDBOX_READY, .idle_timeout_ms = 90 * SECOND }, true, NULL },
	{ "not idle long enough", { YOUNG, .status = SANDBOX_READY, .idle_timeout_ms = 91 * SECOND }, false, NULL },
	{ "pending is not idle", { YOUNG, .status = SANDBOX_PENDING, .idle_timeout_ms = SECOND }, false, NULL },
};

static void
test_each_rule_at_its_edge(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *rule = reap_rule(&cases[i].record, &limits, cases[i].busy, NOW);

		if ((rule == NULL) != (cases[i].rule == NULL) || (rule != NULL && strcmp(rule, cases[i].rule) != 0))
			fail_msg("%s: %s, not %s", cases[i].what, rule != NULL ? rule : "stays",
				cases[i].rule != NULL ? cases[i].rule : "stays");
	}
}

static void
test_heartbeat_rule_can_be_switched_off(void **state)
{
	const struct reap_limits off = { .heartbeat_timeout_ms = SECOND, .pending_buffer_ms = 0 };
	const struct sandbox_record record = { YOUNG, .status = SANDBOX_READY, .heartbeat_ms = 1 };

	(void)state;
	assert_null(reap_rule(&record, &off, false, NOW));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_rule_at_its_edge),
		cmocka_unit_test(test_heartbeat_rule_can_be_switched_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
