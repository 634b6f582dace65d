/* test_url.c - redis_url: what it may be, and that refusals do not tell the password. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "redis/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void
expect(const char *text, const char *described, const char *user, const char *password)
{
	struct redis_url url;
	struct err err;
	char words[512];

	if (redis_url_parse(text, &url, &err) != 0)
		fail_msg("%s: %s", text, err.msg);
	redis_url_describe(&url, words, sizeof words);
	assert_string_equal(words, described);
	assert_string_equal(url.user, user);
	assert_string_equal(url.password, password);
}

static void
test_parts(void **state)
{
	(void)state;
	expect("redis://localhost", "redis://localhost:6379/0", "", "");
	expect("redis://r.example/", "redis://r.example:6379/0", "", "");
	expect("redis://127.0.0.1:7000/3", "redis://127.0.0.1:7000/3", "", "");
	expect("redis://[::1]:7000/15", "redis://[::1]:7000/15", "", "");
	expect("redis://:se%2Fcret@h:1", "redis://h:1/0", "", "se/cret");
	expect("redis://me:p:a@ss@h", "redis://h:6379/0", "me", "p:a@ss");
	expect("unix:///run/redis.sock", "unix:///run/redis.sock?db=0", "", "");
}

static void
test_sockets(void **state)
{
	(void)state;
	expect("unix://me:pass@/run/redis.sock?db=7", "unix:///run/redis.sock?db=7", "me", "pass");
}

static void
test_refusals(void **state)
{
	static const char *const texts[] = { "", "localhost", "http://h", "redis://", "redis://:pw@", "redis://h:0",
		"redis://h:65536", "redis://h:", "redis://h:7x", "redis://h/x", "redis://h/99999", "redis://h?db=1",
		"redis://me@h", "redis://h/1/2", "redis://[::1", "redis://[::1]x", "redis://h%0a", "redis://h%zz",
		"redis://h%2", "redis://a b", "unix://", "unix://run/sock", "unix:///s?base=1",
		"unix:///s?db=", "unix:///s?db=1&x=2", NULL };

	(void)state;
	for (const char *const *text = texts; *text != NULL; text++) {
		struct redis_url url = { .port = 77 };
		struct err err = { .code = ERR_NONE };

		if (redis_url_parse(*text, &url, &err) == 0)
			fail_msg("%s was taken", *text);
		assert_int_equal(err.code, ERR_INVALID);
		assert_int_equal(url.port, 77);
	}
}

static void
test_tls_is_refused_with_words(void **state)
{
	struct redis_url url;
	struct err err;

	(void)state;
	assert_int_equal(redis_url_parse("rediss://h", &url, &err), -1);
	assert_int_equal(err.code, ERR_UNSUPPORTED);
	assert_non_null(strstr(err.msg, "TLS"));
}

static void
test_long_parts_and_secrets(void **state)
{
	char text[1024];
	struct redis_url url;
	struct err err;

	(void)state;
	snprintf(text, sizeof text, "redis://:%0300d@h", 7);
	assert_int_equal(redis_url_parse(text, &url, &err), -1);
	assert_non_null(strstr(err.msg, "password"));
	snprintf(text, sizeof text, "unix:///%0120d", 7);
	assert_int_equal(redis_url_parse(text, &url, &err), -1);
	assert_int_equal(redis_url_parse("redis://:hush%1@h", &url, &err), -1);
	assert_null(strstr(err.msg, "hush"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_tls_is_refused_with_words),
		cmocka_unit_test(test_long_parts_and_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
