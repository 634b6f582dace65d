/* test_here.c - which servers are this host. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/client/here.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
test_this_host(void **state)
{
	static const char *const urls[] = { "http://localhost:8000", "https://LocalHost/a/b",
		"http://lab.localhost:1", "http://127.0.0.1:8000", "http://127.9.8.7", "http://[::1]:8000/x",
		"http://user:word@localhost:8000" };

	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
		assert_true(url_is_here(urls[i]));
}

static void
test_other_hosts(void **state)
{
	static const char *const urls[] = { "http://localhost.example:8000", "http://127.0.0.1.example",
		"http://127.example", "http://notlocalhost", "http://localhost@lab.example:8000", "http://[::2]",
		"http://10.0.0.1", "http://lab.example/localhost", "http://[::1", "http://", "", "nonsense" };

	(void)state;
	for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
		assert_false(url_is_here(urls[i]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_host),
		cmocka_unit_test(test_other_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
