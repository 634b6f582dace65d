/* test_handle_service.c - root, readiness, resources and the metrics text. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "api_fixture.h"
#include "fake_domain.h"

#include "base/id.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"

#include <json-c/json.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void
test_root_names_the_service(void **state)
{
	AUTO_REPLY reply = fixture_call(*state, "GET", "/", NULL);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_text(&reply, "service"), "orchard");
	assert_string_equal(reply_text(&reply, "status"), "running");
	assert_string_not_equal(reply_text(&reply, "version"), "");
}

static void
test_ready_or_why_not(void **state)
{
	AUTO_REPLY ready = fixture_call(*state, "GET", "/ready", NULL);

	assert_int_equal(ready.status, 200);
	assert_string_equal(ready.body, "{\"status\":\"ready\"}");
	fake.problems = "no spawner\nno disk\n";
	AUTO_REPLY not = fixture_call(*state, "GET", "/ready", NULL);

	assert_int_equal(not .status, 503);
	assert_string_equal(not .body, "{\"status\":\"not_ready\",\"problems\":[\"no spawner\",\"no disk\"]}");
}

static void
test_ready_may_be_answered_later(void **state)
{
	struct fixture *fixture = *state;

	fake.defer_get = true;
	fixture_start(fixture, "GET", "/ready", NULL);
	fixture_run_until(fixture, &fake.gets, true);
	fake_end_get();
	AUTO_REPLY reply = fixture_reply(fixture, fixture->client, false);

	assert_int_equal(reply.status, 200);
}

static void
test_resources_or_why_not(void **state)
{
	AUTO_REPLY good = fixture_call(*state, "GET", "/resources", NULL);

	assert_int_equal(good.status, 200);
	assert_string_equal(good.body, "{\"status\":\"ok\"}");
	fake_fail(ERR_UNAVAILABLE, "the driver does not answer");
	AUTO_REPLY bad = fixture_call(*state, "GET", "/resources", NULL);

	assert_problem(&bad, 503, "unavailable");
}

/* Each family has HELP and TYPE once, in front of its samples, which stand together. */
static void
assert_well_formed(const char *text)
{
	char family[128] = "", seen[16384] = "", type[16] = "";

	for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
		char name[128], quoted[136];

		if (sscanf(line, "# HELP %127s", name) == 1) {
			snprintf(quoted, sizeof quoted, "|%s|", name);
			assert_null(strstr(seen, quoted));
			strncat(seen, quoted, sizeof seen - strlen(seen) - 1);
			strcpy(family, name);
		} else if (sscanf(line, "# TYPE %127s %15s", name, type) == 2) {
			assert_string_equal(name, family);
		} else {
			snprintf(name, sizeof name, "%.*s", (int)strcspn(line, "{ "), line);
			if (strcmp(type, "summary") == 0)
				name[strlen(family)] = '\0'; /* _sum, _count */
			assert_string_equal(name, family);
		}
	}
	assert_int_equal(text[strlen(text) - 1], '\n');
}

static void
test_metrics_are_prometheus_text(void **state)
{
	struct fixture *fixture = *state;
	struct sandbox_record record = { .status = SANDBOX_READY };
	uint32_t slot;
	struct err err;

	strcpy(record.id, "box-1");
	id_uuid4(record.uid);
	assert_int_equal(sandbox_table_insert(shm_sandboxes(fixture->shm), &record, &slot, &err), 0);
	AUTO_REPLY reply = fixture_call(fixture, "GET", "/metrics", NULL);

	assert_int_equal(reply.status, 200);
	assert_string_equal(reply_header(&reply, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
	assert_well_formed(reply.body);
	assert_non_null(strstr(reply.body, "\norchard_requests_total 1\n"));
	assert_non_null(strstr(reply.body, "\norchard_sandboxes{status=\"ready\"} 1\n"));
	assert_non_null(strstr(reply.body, "\norchard_sandboxes{status=\"pending\"} 0\n"));
	assert_non_null(strstr(reply.body, "\norchard_sandboxes_capacity 16\n"));
	assert_non_null(strstr(reply.body, "\norchard_execs_running_capacity 7\n"));
	assert_non_null(strstr(reply.body, "\norchard_processes{role=\"worker\"} 1\n"));
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		API_TEST(test_root_names_the_service),
		API_TEST(test_ready_or_why_not),
		API_TEST(test_ready_may_be_answered_later),
		API_TEST(test_resources_or_why_not),
		API_TEST(test_metrics_are_prometheus_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
