/* test_frame.c - messages of a terminal: written as the server reads them, and read whatever they are. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "orchardctl/terminal/frame.h"
#include "orchardctl/terminal/terminal.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int
read_text(const char *text, struct heard *heard)
{
	struct err err;

	return frame_read(text, strlen(text), heard, &err);
}

static void
test_init_says_what_is_asked_for(void **state)
{
	struct json_object *cmd = json_tokener_parse("[\"a\",\"b c\"]"), *env = json_tokener_parse("{\"X\":\"1\"}");
	struct terminal_spec spec = { .cmd = cmd, .env = env, .cwd = "/srv" };
	AUTO_FREE char *text = frame_init(&spec, 24, 80);
	AUTO_FREE char *plain = NULL;

	(void)state;
	assert_string_equal(text,
		"{\"type\":\"init\",\"cmd\":[\"a\",\"b "
		"c\"],\"env\":{\"X\":\"1\"},\"cwd\":\"/srv\",\"rows\":24,\"cols\":80,"
		"\"login_shell\":false,\"detach\":true}");
	spec = (struct terminal_spec){ .login_shell = true };
	plain = frame_init(&spec, 1, 2);
	assert_string_equal(plain,
		"{\"type\":\"init\",\"cmd\":null,\"env\":null,\"rows\":1,\"cols\":2,\"login_shell\":true,"
		"\"detach\":true}");
	json_object_put(cmd);
	json_object_put(env);
}

static void
test_small_ones(void **state)
{
	AUTO_FREE char *typed = frame_stdin("\0\xff~", 3), *size = frame_resize(50, 132), *end = frame_close();

	(void)state;
	assert_string_equal(typed, "{\"type\":\"stdin\",\"data\":\"AP9+\"}");
	assert_string_equal(size, "{\"type\":\"resize\",\"rows\":50,\"cols\":132}");
	assert_string_equal(end, "{\"type\":\"close\"}");
}

static void
test_what_is_heard(void **state)
{
	struct heard heard;

	(void)state;
	assert_int_equal(
		read_text("{\"type\":\"ready\",\"pid\":7,\"session\":\"0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77\","
			  "\"offset\":12}",
			&heard),
		0);
	assert_int_equal(heard.kind, HEARD_READY);
	assert_string_equal(heard.session, "0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77");
	assert_int_equal(heard.offset, 12);
	assert_int_equal(read_text("{\"type\":\"stdout\",\"data\":\"aGkA\"}", &heard), 0);
	assert_int_equal(heard.kind, HEARD_OUTPUT);
	assert_int_equal(heard.len, 3);
	assert_memory_equal(heard.data, "hi\0", 3);
	free(heard.data);
	assert_int_equal(read_text("{\"type\":\"exit\",\"code\":-15,\"usage\":{}}", &heard), 0);
	assert_int_equal(heard.kind, HEARD_EXIT);
	assert_int_equal(heard.code, -15);
	assert_int_equal(read_text("{\"type\":\"error\",\"message\":\"no\"}", &heard), 0);
	assert_string_equal(heard.words, "no");
	assert_int_equal(read_text("{\"type\":\"of later\",\"data\":1}", &heard), 0);
	assert_int_equal(heard.kind, HEARD_OTHER);
}

static void
test_what_is_none(void **state)
{
	static const char *const wrong[] = { "", "[]", "{", "null", "{\"type\":\"stdout\"}",
		"{\"type\":\"stdout\",\"data\":\"a\"}", "{\"type\":\"stdout\",\"data\":7}", "{\"type\":\"exit\"}",
		"{\"type\":\"exit\",\"code\":\"0\"}", "{\"type\":\"exit\",\"code\":1e99}", "{\"type\":7}" };
	struct heard heard = { .len = 99 };

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_int_equal(read_text(wrong[i], &heard), -1);
		assert_int_equal(heard.len, 99);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_init_says_what_is_asked_for),
		cmocka_unit_test(test_small_ones),
		cmocka_unit_test(test_what_is_heard),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
