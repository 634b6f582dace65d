/* test_patch_names.c - which files a patch may touch. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/names.h"

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* expected: the names, each behind a newline. */
static void
check(const char *text, const char *expected)
{
	char all[1024] = "";
	struct patch_names names;

	patch_names_read(text, strlen(text), &names);
	for (size_t i = 0; i < names.count; i++) {
		strcat(all, "\n");
		strcat(all, names.list[i]);
	}
	patch_names_fini(&names);
	assert_string_equal(all, expected);
}

static void
test_headers(void **state)
{
	(void)state;
	check("", "");
	check("words\n", "");
	check("--- a/x/y.c\t2020-01-01\n+++ b/x/y.c\n", "\nx/y.c");
	check("--- a/old name\n+++ b/new name\n", "\nnew\nnew name\nold\nold name");
	check("--- /dev/null\n+++ b/n\r\n", "\ndev/null\nn");
	check("--- plain\n", "\nplain");
	check("rename from x/y\nrename to z\ncopy from q\ncopy to r\n", "\nq\nr\nx/y\nz");
	check("Index: a/b", "\nb");
}

static void
test_git_line_alone_names_the_file(void **state)
{
	(void)state;
	check("diff --git a/m b/m\nold mode 100644\n", "\nm");
	check("diff --git a/x b/x b/x b/x\n", "\nx b/x");
	check("diff --git \"a/t\\303\\244b\\t\\\"\\\\\" \"b/t\\303\\244b\\t\\\"\\\\\"\n", "\nt\303\244b\t\"\\");
	check("diff --git \"a/open\n", "");
	check("diff --git \"\\\n", "");
	check("diff --git \n", "");
}

static void
test_what_no_tool_takes_is_no_name(void **state)
{
	struct patch_names names;

	(void)state;
	check("rename to /etc/passwd\n", "");
	patch_names_read("+++ b/a\0b\n", 10, &names);
	assert_int_equal(names.count, 0);
	patch_names_fini(&names);
	check("+++ \"b/a\\0x\"\n", "");
	check("--- a/\n+++ \n", "");
}

static void
test_numstat(void **state)
{
	static const char text[] = "1\t0\tnew name\0-\t-\tb\tin\0"
				   "0\t3\ta/gone\0junk\0"
				   "1\tcut";
	struct patch_names names;

	(void)state;
	patch_names_read_numstat(text, sizeof text - 1, &names);
	assert_int_equal(names.count, 3);
	assert_string_equal(names.list[0], "a/gone");
	assert_string_equal(names.list[1], "b\tin");
	assert_string_equal(names.list[2], "new name");
	patch_names_fini(&names);
	patch_names_read_numstat(NULL, 0, &names);
	assert_int_equal(names.count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_git_line_alone_names_the_file),
		cmocka_unit_test(test_what_no_tool_takes_is_no_name),
		cmocka_unit_test(test_numstat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
