/* test_place.c - which end of a copy is where, and what things are called. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/place.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void
test_ends(void **state)
{
	static const struct {
		const char *text, *sandbox, *path;
		bool stream;
	} cases[] = {
		{ "x1:/srv", "x1", "/srv", false },
		{ "x1:", "x1", ".", false },
		{ "x1:a:b", "x1", "a:b", false },
		{ "./x1:/srv", NULL, "./x1:/srv", false },
		{ "/a:b", NULL, "/a:b", false },
		{ "UPPER:a", NULL, "UPPER:a", false },
		{ "-x:a", NULL, "-x:a", false },
		{ ":a", NULL, ":a", false },
		{ "-", NULL, "-", true },
		{ "plain", NULL, "plain", false },
		{ "x1:-", "x1", "-", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct place place;

		place_read(&place, cases[i].text);
		if (cases[i].sandbox == NULL)
			assert_null(place.sandbox);
		else
			assert_string_equal(place.sandbox, cases[i].sandbox);
		assert_string_equal(place.path, cases[i].path);
		assert_int_equal(place.stream, cases[i].stream);
		place_fini(&place);
	}
}

static void
test_names(void **state)
{
	static const struct {
		const char *path, *name;
	} cases[] = { { "/a/b", "b" }, { "b", "b" }, { "/a/b///", "b" }, { "/", NULL }, { "", NULL }, { ".", NULL },
		{ "/a/.", NULL }, { "..", NULL }, { "a/..", NULL }, { "...", "..." }, { ".x", ".x" } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		AUTO_FREE char *name = place_name(cases[i].path);

		if (cases[i].name == NULL)
			assert_null(name);
		else
			assert_string_equal(name, cases[i].name);
	}
}

static void
test_joins(void **state)
{
	AUTO_FREE char *plain = place_join("a", "b"), *slash = place_join("a//", "b"), *root = place_join("/", "b");

	(void)state;
	assert_string_equal(plain, "a/b");
	assert_string_equal(slash, "a/b");
	assert_string_equal(root, "/b");
	assert_true(place_is_contents("."));
	assert_true(place_is_contents("a/."));
	assert_false(place_is_contents("a."));
	assert_true(place_wants_directory("a/"));
	assert_false(place_wants_directory("a/."));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_joins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
