/* test_router.c - the real table of routes, with handlers that are only looked at. */
/* SPDX-License-Identifier: MIT */
#include "worker/router.h"

#include "base/err.h"
#include "base/file.h"
#include "worker/routes.h"

#include <fcntl.h>
#include <stdio.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define STAND_IN(name)                                                                                             \
	void name(struct request *request)                                                                         \
	{                                                                                                          \
		(void)request;                                                                                     \
	}

STAND_IN(handle_root)
STAND_IN(handle_health)
STAND_IN(handle_ready)
STAND_IN(handle_resources)
STAND_IN(handle_metrics)
STAND_IN(handle_openapi)
STAND_IN(handle_sandbox_create)
STAND_IN(handle_sandbox_list)
STAND_IN(handle_sandbox_get)
STAND_IN(handle_sandbox_patch)
STAND_IN(handle_sandbox_delete)
STAND_IN(handle_sandbox_wait)
STAND_IN(handle_sandbox_heartbeat)
STAND_IN(handle_archive_put)
STAND_IN(handle_archive_get)
STAND_IN(handle_exec)
STAND_IN(handle_patch)
STAND_IN(handle_file_put)
STAND_IN(handle_file_get)
STAND_IN(handle_file_stat)
STAND_IN(handle_file_list)
STAND_IN(handle_file_delete)
STAND_IN(handle_file_upload)
STAND_IN(handle_file_download)
STAND_IN(handle_file_mkdir)
STAND_IN(handle_file_move)
STAND_IN(handle_job_list)
STAND_IN(handle_job_get)
STAND_IN(handle_job_wait)
STAND_IN(handle_job_cancel)
STAND_IN(handle_job_output)
STAND_IN(handle_job_stream)
STAND_IN(handle_job_stdin)
STAND_IN(handle_pty)

#define UUID "0b0e7a52-6f3c-4c5b-9d0a-0123456789ab"

static struct router_match match;

static enum router_result
find(enum http_method method, const char *path)
{
	memset(&match, 0, sizeof match);
	return router_find(routes, routes_count, method, path, &match);
}

static void
assert_allow(const char *expected)
{
	char allow[ROUTER_ALLOW_SIZE];

	router_allow(match.methods, allow);
	assert_string_equal(allow, expected);
}

static void
test_each_route_finds_its_handler(void **state)
{
	static const struct {
		enum http_method method;
		const char *path;
		void (*handle)(struct request *request);
		enum route_auth auth;
	} expected[] = {
		{ HTTP_GET, "/", handle_root, ROUTE_OPEN },
		{ HTTP_GET, "/health", handle_health, ROUTE_OPEN },
		{ HTTP_GET, "/ready", handle_ready, ROUTE_OPEN },
		{ HTTP_GET, "/resources", handle_resources, ROUTE_KEY },
		{ HTTP_GET, "/metrics", handle_metrics, ROUTE_METRICS },
		{ HTTP_GET, "/openapi.json", handle_openapi, ROUTE_KEY },
		{ HTTP_POST, "/sandboxes", handle_sandbox_create, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes", handle_sandbox_list, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1", handle_sandbox_get, ROUTE_KEY },
		{ HTTP_PATCH, "/sandboxes/a1", handle_sandbox_patch, ROUTE_KEY },
		{ HTTP_DELETE, "/sandboxes/a1", handle_sandbox_delete, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1/wait", handle_sandbox_wait, ROUTE_KEY },
		{ HTTP_POST, "/sandboxes/a1/heartbeat", handle_sandbox_heartbeat, ROUTE_KEY },
		{ HTTP_PUT, "/sandboxes/a1/archive", handle_archive_put, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1/archive", handle_archive_get, ROUTE_KEY },
		{ HTTP_POST, "/sandboxes/a1/exec", handle_exec, ROUTE_KEY },
		{ HTTP_POST, "/sandboxes/a1/apply_patch", handle_patch, ROUTE_KEY },
		{ HTTP_POST, "/sandboxes/a1/files", handle_file_upload, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1/files", handle_file_download, ROUTE_KEY },
		{ HTTP_DELETE, "/sandboxes/a1/files", handle_file_delete, ROUTE_KEY },
		{ HTTP_PUT, "/sandboxes/a1/files/raw", handle_file_put, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1/files/raw", handle_file_get, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1/files/list", handle_file_list, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1/files/stat", handle_file_stat, ROUTE_KEY },
		{ HTTP_POST, "/sandboxes/a1/files/mkdir", handle_file_mkdir, ROUTE_KEY },
		{ HTTP_POST, "/sandboxes/a1/files/move", handle_file_move, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/a1/jobs", handle_job_list, ROUTE_KEY },
		{ HTTP_GET, "/jobs/" UUID, handle_job_get, ROUTE_KEY },
		{ HTTP_GET, "/jobs/" UUID "/wait", handle_job_wait, ROUTE_KEY },
		{ HTTP_POST, "/jobs/" UUID "/cancel", handle_job_cancel, ROUTE_KEY },
		{ HTTP_GET, "/jobs/" UUID "/output", handle_job_output, ROUTE_KEY },
		{ HTTP_GET, "/jobs/" UUID "/stream", handle_job_stream, ROUTE_KEY },
		{ HTTP_POST, "/jobs/" UUID "/stdin", handle_job_stdin, ROUTE_KEY },
		{ HTTP_GET, "/sandboxes/box-1/exec/pty", handle_pty, ROUTE_SOCKET },
	};

	(void)state;
	assert_int_equal(routes_count, sizeof expected / sizeof expected[0]);
	for (size_t i = 0; i < routes_count; i++) {
		assert_int_equal(find(expected[i].method, expected[i].path), ROUTER_FOUND);
		assert_ptr_equal(match.route->handle, expected[i].handle);
		assert_int_equal(match.route->auth, expected[i].auth);
		assert_true(router_id_is_valid(&match));
	}
}

static void
test_what_is_in_no_line_is_no_path(void **state)
{
	static const char *const paths[] = { "", "health", "/nosuch", "/healthz", "/heal", "/health/", "//",
		"//health", "/health//", "/sandboxes/", "/sandboxes//", "/sandboxes//exec", "/sandboxes/a/",
		"/sandboxes/a/exec/", "/sandboxes/a/exec/b", "/sandboxes/a/b/c/d/e/f", "/jobs", "/jobs/",
		"/sandboxes/a/nosuch", "/Health", "/sandboxes/%zz", "/sandboxes/%", "/sandboxes/a%00",
		"/sandboxes/%4" };

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		assert_int_equal(find(HTTP_GET, paths[i]), ROUTER_NO_PATH);
		assert_int_equal(find(HTTP_OPTIONS, paths[i]), ROUTER_NO_PATH);
	}
}

static void
test_another_method_is_told_what_there_is(void **state)
{
	(void)state;
	assert_int_equal(find(HTTP_POST, "/health"), ROUTER_NO_METHOD);
	assert_allow("GET, HEAD, OPTIONS");
	assert_int_equal(find(HTTP_DELETE, "/sandboxes"), ROUTER_NO_METHOD);
	assert_allow("GET, HEAD, POST, OPTIONS");
	assert_int_equal(find(HTTP_PUT, "/sandboxes/a"), ROUTER_NO_METHOD);
	assert_allow("GET, HEAD, PATCH, DELETE, OPTIONS");
	assert_int_equal(find(HTTP_OTHER, "/sandboxes/a/exec"), ROUTER_NO_METHOD);
	assert_allow("POST, OPTIONS");
	assert_int_equal(find(HTTP_HEAD, "/sandboxes/a/exec"), ROUTER_NO_METHOD);
	assert_int_equal(find(HTTP_OPTIONS, "/sandboxes/a/exec"), ROUTER_OPTIONS);
	assert_allow("POST, OPTIONS");
}

static void
test_the_server_as_a_whole_takes_what_some_path_takes(void **state)
{
	(void)state;
	assert_int_equal(find(HTTP_OPTIONS, "*"), ROUTER_OPTIONS);
	assert_allow("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
	assert_int_equal(find(HTTP_GET, "*"), ROUTER_NO_PATH);
	assert_int_equal(find(HTTP_OPTIONS, "/*"), ROUTER_NO_PATH);
}

static void
test_head_is_found_where_get_is(void **state)
{
	(void)state;
	assert_int_equal(find(HTTP_HEAD, "/health"), ROUTER_FOUND);
	assert_ptr_equal(match.route->handle, handle_health);
	assert_int_equal(find(HTTP_HEAD, "/sandboxes"), ROUTER_FOUND);
	assert_ptr_equal(match.route->handle, handle_sandbox_list);
}

static void
test_an_encoded_slash_stays_in_its_segment(void **state)
{
	(void)state;
	assert_int_equal(find(HTTP_GET, "/sandboxes/a%2Fwait"), ROUTER_FOUND);
	assert_ptr_equal(match.route->handle, handle_sandbox_get);
	assert_string_equal(match.id, "a/wait");
	assert_false(router_id_is_valid(&match));
	assert_int_equal(find(HTTP_GET, "/sandboxes%2Fa"), ROUTER_NO_PATH);
	assert_int_equal(find(HTTP_GET, "%2Fhealth"), ROUTER_NO_PATH);
	assert_int_equal(find(HTTP_GET, "/sandboxes/..%2F..%2Fhealth"), ROUTER_FOUND);
	assert_false(router_id_is_valid(&match));
}

static void
test_an_escape_means_what_it_stands_for(void **state)
{
	(void)state;
	assert_int_equal(find(HTTP_GET, "/he%61lth"), ROUTER_FOUND);
	assert_int_equal(find(HTTP_GET, "/sandboxes/%61%2d1/wait"), ROUTER_FOUND);
	assert_ptr_equal(match.route->handle, handle_sandbox_wait);
	assert_string_equal(match.id, "a-1");
	assert_true(router_id_is_valid(&match));
	assert_int_equal(find(HTTP_GET, "/sandboxes/a%252Fb"), ROUTER_FOUND);
	assert_string_equal(match.id, "a%2Fb"); /* decoded once only */
	assert_false(router_id_is_valid(&match));
}

static void
test_an_id_that_breaks_its_rule_is_not_valid(void **state)
{
	static const char *const paths[] = { "/sandboxes/Foo_Bar", "/sandboxes/lock:x", "/sandboxes/-a",
		"/sandboxes/a-", "/sandboxes/..", "/sandboxes/.", "/sandboxes/%C3%A9", "/sandboxes/a%0A",
		"/sandboxes/%20", "/sandboxes/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"/sandboxes/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"/jobs/nosuch", "/jobs/0B0E7A52-6F3C-4C5B-9D0A-0123456789AB", ("/jobs/" UUID "0"),
		("/jobs/%20" UUID) };

	(void)state;
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		assert_int_equal(find(HTTP_GET, paths[i]), ROUTER_FOUND);
		assert_false(router_id_is_valid(&match));
	}
}

/* "{sandbox}" and "{job}" are "{id}" to users. */
static void
heading_of(const struct route *route, char *buf, size_t size)
{
	static const char *const names[] = { [HTTP_GET] = "GET",
		[HTTP_POST] = "POST",
		[HTTP_PUT] = "PUT",
		[HTTP_PATCH] = "PATCH",
		[HTTP_DELETE] = "DELETE" };
	const char *open = strchr(route->pattern, '{');

	if (open == NULL)
		snprintf(buf, size, "\n### %s %s\n", names[route->method], route->pattern);
	else
		snprintf(buf, size, "\n### %s %.*s{id}%s\n", names[route->method], (int)(open - route->pattern),
			route->pattern, strchr(open, '}') + 1);
}

static void
test_each_route_is_described_to_users(void **state)
{
	const char *srcdir = getenv("srcdir");
	AUTO_FREE char *path = NULL;
	AUTO_FREE char *text = NULL;
	char heading[128];
	size_t len;
	struct err err;

	(void)state;
	assert_true(asprintf(&path, "%s/docs/rest-api.md", srcdir != NULL ? srcdir : ".") > 0);
	if (file_read_at(AT_FDCWD, path, 1024 * 1024, &text, &len, &err) != 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < routes_count; i++) {
		heading_of(&routes[i], heading, sizeof heading);
		if (strstr(text, heading) == NULL)
			fail_msg("docs/rest-api.md has no heading%s", heading);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_route_finds_its_handler),
		cmocka_unit_test(test_each_route_is_described_to_users),
		cmocka_unit_test(test_what_is_in_no_line_is_no_path),
		cmocka_unit_test(test_another_method_is_told_what_there_is),
		cmocka_unit_test(test_the_server_as_a_whole_takes_what_some_path_takes),
		cmocka_unit_test(test_head_is_found_where_get_is),
		cmocka_unit_test(test_an_encoded_slash_stays_in_its_segment),
		cmocka_unit_test(test_an_escape_means_what_it_stands_for),
		cmocka_unit_test(test_an_id_that_breaks_its_rule_is_not_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
