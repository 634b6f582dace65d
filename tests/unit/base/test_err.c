/* test_err.c - messages stay whole, keep their code, and can be built from themselves. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void
test_set_returns_minus_one_and_fills(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_set(&err, ERR_BUSY, "%d of %s", 3, "queue"), -1);
	assert_int_equal(err.code, ERR_BUSY);
	assert_string_equal(err.msg, "3 of queue");
	assert_int_equal(err_set(NULL, ERR_BUSY, "nobody asks"), -1);
}

static void
test_message_can_be_built_from_itself(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ERR_NOT_FOUND, "inner");
	err_set(&err, err.code, "outer (%s)", err.msg);
	assert_string_equal(err.msg, "outer (inner)");
	assert_int_equal(err_prefix(&err, "sandbox %s", "a"), -1);
	assert_string_equal(err.msg, "sandbox a: outer (inner)");
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void
test_errno_keeps_its_meaning(void **state)
{
	static const struct {
		int errnum;
		enum err_code code;
	} cases[] = {
		{ ENOSPC, ERR_NO_SPACE },
		{ EDQUOT, ERR_NO_SPACE },
		{ EACCES, ERR_DENIED },
		{ EPERM, ERR_DENIED },
		{ ENOENT, ERR_NOT_FOUND },
		{ EEXIST, ERR_EXISTS },
		{ EAGAIN, ERR_BUSY },
		{ EMFILE, ERR_NO_CAPACITY },
		{ EIO, ERR_INTERNAL },
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(err_set_errno(&err, cases[i].errnum, "open %s", "/x"), -1);
		assert_int_equal(err.code, cases[i].code);
	}
	assert_string_equal(err.msg, "open /x: Input/output error");
}

static void
test_long_message_is_cut_at_a_whole_character(void **state)
{
	char text[1024];
	struct err err;

	(void)state;
	for (size_t shift = 0; shift < 3; shift++) {
		memset(text, 'a', shift);
		for (size_t i = shift; i + 3 < sizeof text; i += 3)
			memcpy(text + i, "\xe2\x82\xac", 4);
		err_set(&err, ERR_INVALID, "%s", text);
		assert_true(strlen(err.msg) < sizeof err.msg);
		assert_true(strlen(err.msg) > sizeof err.msg - 8);
		assert_true(text_is_utf8(err.msg, strlen(err.msg)));
		assert_string_equal(err.msg + strlen(err.msg) - 3, "...");
	}
}

static void
test_quoted_bytes_never_make_it_invalid(void **state)
{
	struct err err;

	(void)state;
	err_set(&err, ERR_INVALID, "\"%.4s\" is no name", "abc\xe2\x82\xac");
	assert_string_equal(err.msg, "\"abc?\" is no name");
	err_prefix(&err, "image %.2s", "\xe2\x82\xac");
	assert_string_equal(err.msg, "image ?: \"abc?\" is no name");
}

static void
test_message_that_just_fits_is_not_cut(void **state)
{
	char text[sizeof((struct err *)NULL)->msg];
	struct err err;

	(void)state;
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	err_set(&err, ERR_INVALID, "%s", text);
	assert_string_equal(err.msg, text);
}

static void
test_every_code_has_its_own_name(void **state)
{
	(void)state;
	for (int a = 0; a < ERR_CODE_COUNT; a++) {
		assert_non_null(err_code_name((enum err_code)a));
		for (int b = 0; b < a; b++)
			assert_string_not_equal(err_code_name((enum err_code)a), err_code_name((enum err_code)b));
	}
	assert_string_equal(err_code_name(ERR_NOT_FOUND), "not_found");
	assert_string_equal(err_code_name(ERR_CODE_COUNT), "internal");
	assert_string_equal(err_code_name((enum err_code) - 1), "internal");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_returns_minus_one_and_fills),
		cmocka_unit_test(test_message_can_be_built_from_itself),
		cmocka_unit_test(test_errno_keeps_its_meaning),
		cmocka_unit_test(test_long_message_is_cut_at_a_whole_character),
		cmocka_unit_test(test_quoted_bytes_never_make_it_invalid),
		cmocka_unit_test(test_message_that_just_fits_is_not_cut),
		cmocka_unit_test(test_every_code_has_its_own_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
