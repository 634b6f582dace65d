/* test_openapi.c - the description and the router have the same operations, and every refusal has its words. */
/* SPDX-License-Identifier: MIT */
#include "worker/openapi.h"
#include "worker/openapi_refusal.h"

#include "api_fixture.h"

#include "base/json.h"
#include "worker/problem.h"
#include "worker/routes.h"

#include <json-c/json.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct json_object *
at(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

static bool
is_method(const char *name)
{
	static const char *const others[] = { "parameters", "summary", "description", "servers" };

	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		if (strcmp(others[i], name) == 0)
			return false;
	}
	return true;
}

static bool
is_routed(const char *path, const char *method)
{
	for (size_t i = 0; i < routes_count; i++) {
		char of_route[OPENAPI_PATH_SIZE];

		openapi_path(&routes[i], of_route);
		if (strcmp(of_route, path) == 0 && strcmp(openapi_method(&routes[i]), method) == 0)
			return true;
	}
	return false;
}

static void
test_each_route_is_described_to_programs(void **state)
{
	AUTO_JSON struct json_object *document = openapi_build(routes, routes_count);

	(void)state;
	for (size_t i = 0; i < routes_count; i++) {
		char path[OPENAPI_PATH_SIZE];

		openapi_path(&routes[i], path);
		if (at(at(at(document, "paths"), path), openapi_method(&routes[i])) == NULL)
			fail_msg("docs/openapi does not describe %s %s", openapi_method(&routes[i]), path);
	}
}

static void
test_what_is_described_is_routed(void **state)
{
	AUTO_JSON struct json_object *document = openapi_build(routes, routes_count);

	(void)state;
	json_object_object_foreach(at(document, "paths"), path, item)
	{
		json_object_object_foreach(item, method, operation)
		{
			(void)operation;
			if (is_method(method) && !is_routed(path, method))
				fail_msg("docs/openapi describes %s %s, which is no route", method, path);
		}
	}
}

static void
assert_complete(const char *path, struct json_object *operation, struct json_object *ids)
{
	static const char *const wanted[] = { "tags", "operationId", "summary", "responses", "parameters" };
	const char *id = json_object_get_string(at(operation, "operationId"));
	bool answers = false;

	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		if (at(operation, wanted[i]) == NULL)
			fail_msg("an operation of %s has no %s", path, wanted[i]);
	}
	if (at(ids, id) != NULL)
		fail_msg("operationId %s is there twice", id);
	json_object_object_add(ids, id, json_object_new_boolean(true));
	json_object_object_foreach(at(operation, "responses"), status, response)
	{
		(void)response;
		answers |= status[0] < '4';
	}
	if (!answers)
		fail_msg("%s has no answer but refusals", id);
}

static void
test_each_operation_is_complete(void **state)
{
	AUTO_JSON struct json_object *document = openapi_build(routes, routes_count);
	AUTO_JSON struct json_object *ids = json_object_new_object();

	(void)state;
	json_object_object_foreach(at(document, "paths"), path, item)
	{
		json_object_object_foreach(item, method, operation)
		{
			if (is_method(method))
				assert_complete(path, operation, ids);
		}
	}
	assert_string_not_equal(json_object_get_string(at(at(document, "info"), "version")), "");
}

/* As the parts have it, before anything is filled in. */
static struct json_object *
parts(void)
{
	return openapi_build(NULL, 0);
}

static void
test_operations_name_codes_that_exist(void **state)
{
	AUTO_JSON struct json_object *document = parts();

	(void)state;
	json_object_object_foreach(at(document, "paths"), path, item)
	{
		json_object_object_foreach(item, method, operation)
		{
			struct json_object *names = at(operation, "x-problems");

			for (size_t i = 0; names != NULL && i < json_object_array_length(names); i++) {
				const char *code = json_object_get_string(json_object_array_get_idx(names, i));

				if (!openapi_has_code(code))
					fail_msg("%s %s: nothing is refused as \"%s\"", method, path, code);
			}
		}
	}
}

static void
test_each_code_has_its_words(void **state)
{
	(void)state;
	for (enum problem problem = PROBLEM_NONE + 1; problem < PROBLEM_COUNT; problem++) {
		const char *code = problem_info(problem)->code;
		char member[64];

		snprintf(member, sizeof member, "\"%s\": \"", code);
		if (strstr(openapi_parts[0], member) == NULL)
			fail_msg("base.json has no words for \"%s\"", code);
	}
}

static void
test_refusals_are_as_the_table_has_them(void **state)
{
	AUTO_JSON struct json_object *document = openapi_build(routes, routes_count);
	struct json_object *responses = at(at(document, "components"), "responses");
	struct json_object *busy = at(responses, "503.queue_full.agent_unreachable.unavailable");

	(void)state;
	assert_non_null(busy);
	assert_non_null(at(at(busy, "headers"), "Retry-After"));
	assert_non_null(at(at(busy, "headers"), "X-Request-ID"));
	assert_null(at(document, "x-problems"));
}

static void
test_the_document_is_served(void **state)
{
	struct fixture *fixture = *state;
	size_t len;
	const char *text = openapi_text(&len);

	for (int i = 0; i < 2; i++) {
		AUTO_REPLY reply = fixture_call(fixture, "GET", "/openapi.json", NULL);

		assert_int_equal(reply.status, 200);
		assert_string_equal(reply_header(&reply, "Content-Type"), "application/json");
		assert_int_equal(reply.body_len, len);
		assert_memory_equal(reply.body, text, len);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_route_is_described_to_programs),
		cmocka_unit_test(test_what_is_described_is_routed),
		cmocka_unit_test(test_each_operation_is_complete),
		cmocka_unit_test(test_operations_name_codes_that_exist),
		cmocka_unit_test(test_each_code_has_its_words),
		cmocka_unit_test(test_refusals_are_as_the_table_has_them),
		cmocka_unit_test_setup_teardown(test_the_document_is_served, fixture_setup, fixture_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
