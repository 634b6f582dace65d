/* test_cell.c - values as people read them, and as paths carry them. */
/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "orchardctl/client/path.h"
#include "orchardctl/output/cell.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>

static void
expect(char *text, const char *expected)
{
	assert_string_equal(text, expected);
	free(text);
}

static void
test_control_characters_never_come_through(void **state)
{
	(void)state;
	expect(cell_line("a\n\t\r\x1b[31m\x7f\xc2\x9b"), "a\\n\\t\\r\\x1b[31m\\x7f\\x9b");
	expect(cell_line("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xff\xc3"), "gr\xc3\xbc\xc3\x9f \xe2\x82\xac ??");
	expect(cell_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
	expect(cell_line(""), "");
	assert_int_equal(cell_width("gr\xc3\xbc\xc3\x9f"), 4);
}

static void
test_times(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = { { 0, "0s" }, { 0.254, "0.25s" }, { 1.94, "1.9s" }, { 10, "10s" }, { 59.9, "59s" },
		{ 60, "1m" }, { 192, "3m12s" }, { 3600, "1h" }, { 7500, "2h5m" }, { 86400, "1d" },
		{ 187200, "2d4h" }, { -5, "0s" }, { 1e12, "never" } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		expect(cell_duration(cases[i].seconds), cases[i].text);
}

static void
test_sizes(void **state)
{
	(void)state;
	expect(cell_bytes(0), "0");
	expect(cell_bytes(1023), "1023");
	expect(cell_bytes(1536), "1.5Ki");
	expect(cell_bytes(512.0 * 1024 * 1024), "512Mi");
	expect(cell_bytes(20.0 * (1 << 30)), "20Gi");
}

static void
test_no_value_gets_out_of_its_place_in_a_path(void **state)
{
	char *path = path_format("/sandboxes/%s/files/raw", "a/../b?c#d%00");

	(void)state;
	assert_string_equal(path, "/sandboxes/a%2F..%2Fb%3Fc%23d%2500/files/raw");
	path_add(&path, "path", "/tmp/\xc3\xa9 +&=");
	path_add(&path, "mode", NULL);
	path_add(&path, "user", "0");
	expect(path, "/sandboxes/a%2F..%2Fb%3Fc%23d%2500/files/raw?path=%2Ftmp%2F%C3%A9%20%2B%26%3D&user=0");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control_characters_never_come_through),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_no_value_gets_out_of_its_place_in_a_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
