/* test_id.c - the shape of identifiers, and what does not pass as one. */
/* SPDX-License-Identifier: MIT */
#include "base/id.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void
test_uuid4_is_canonical_and_fresh(void **state)
{
	char a[ID_UUID_SIZE], b[ID_UUID_SIZE];

	(void)state;
	for (int i = 0; i < 100; i++) {
		id_uuid4(a);
		id_uuid4(b);
		assert_int_equal(strlen(a), 36);
		assert_true(id_is_uuid(a));
		assert_int_equal(a[14], '4');
		assert_non_null(strchr("89ab", a[19]));
		assert_string_not_equal(a, b);
	}
}

static void
test_only_the_canonical_uuid_is_one(void **state)
{
	static const char *const wrong[] = { "", "0123", "01234567-89ab-4def-8123-456789abcde",
		"01234567-89ab-4def-8123-456789abcdeff", "01234567-89AB-4def-8123-456789abcdef",
		"01234567x89ab-4def-8123-456789abcdef", "0123456789ab4def8123456789abcdef----",
		"{01234567-89ab-4def-8123-456789abcde}", "g1234567-89ab-4def-8123-456789abcdef" };

	(void)state;
	assert_true(id_is_uuid("01234567-89ab-4def-8123-456789abcdef"));
	assert_true(id_is_uuid("00000000-0000-0000-0000-000000000000"));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_false(id_is_uuid(wrong[i]));
}

static void
test_uuid_bytes_are_those_written(void **state)
{
	static const uint8_t expected[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x4d, 0xef, 0x81, 0x23, 0x45,
		0x67, 0x89, 0xab, 0xcd, 0xef };
	uint8_t bytes[16] = { 0 };

	(void)state;
	assert_true(id_uuid_bytes("01234567-89ab-4def-8123-456789abcdef", bytes));
	assert_memory_equal(bytes, expected, 16);
	assert_false(id_uuid_bytes("f1234567-89ab-4def-8123-456789abcdeX", bytes));
	assert_memory_equal(bytes, expected, 16);
}

static void
test_token_is_64_hex_digits(void **state)
{
	char a[ID_TOKEN_SIZE], b[ID_TOKEN_SIZE];

	(void)state;
	id_token(a);
	id_token(b);
	assert_int_equal(strspn(a, "0123456789abcdef"), 64);
	assert_int_equal(strlen(a), 64);
	assert_string_not_equal(a, b);
}

static void
test_sandbox_ids_fit_a_pod_name(void **state)
{
	static const char *const right[] = { "a", "0", "a-b", "sb-0", "a--b",
		"123456789012345678901234567890123456789012345678901234" };
	static const char *const wrong[] = { "", "-", "-a", "a-", "A", "a_b", "a.b", "a/b", "a b", "\xc3\xa4",
		"1234567890123456789012345678901234567890123456789012345" };

	(void)state;
	for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
		assert_true(id_is_sandbox_id(right[i]));
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_false(id_is_sandbox_id(wrong[i]));
}

static void
test_fresh_sandbox_ids_use_the_whole_alphabet(void **state)
{
	unsigned seen[256] = { 0 };
	char id[24], last[24] = "";

	(void)state;
	for (int i = 0; i < 2000; i++) {
		id_sandbox(id);
		assert_int_equal(strlen(id), 23);
		assert_memory_equal(id, "sb-", 3);
		assert_true(id_is_sandbox_id(id));
		assert_string_not_equal(id, last);
		memcpy(last, id, sizeof id);
		for (size_t k = 3; k < 23; k++)
			seen[(unsigned char)id[k]]++;
	}
	/* 40000 letters, 1111 of each expected: 700 is twelve standard deviations away. */
	for (int c = 0; c < 256; c++)
		if (islower(c) || isdigit(c))
			assert_in_range(seen[c], 700, 1500);
		else
			assert_int_equal(seen[c], 0);
}

static void
test_secrets_are_equal_only_byte_for_byte(void **state)
{
	(void)state;
	assert_true(id_secret_equal("", 0, "", 0));
	assert_true(id_secret_equal("secret", 6, "secret", 6));
	assert_true(id_secret_equal("a\0b", 3, "a\0b", 3));
	assert_false(id_secret_equal("a\0b", 3, "a\0c", 3));
	assert_false(id_secret_equal("secret", 6, "secreT", 6));
	assert_false(id_secret_equal("secret", 6, "Secret", 6));
	assert_false(id_secret_equal("secret", 6, "secret", 5));
	assert_false(id_secret_equal("secret", 6, "", 0));
	/* Differences must not cancel out. */
	assert_false(id_secret_equal("ab", 2, "ba", 2));
	assert_false(id_secret_equal("\x01\x01", 2, "\x81\x81", 2));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uuid4_is_canonical_and_fresh),
		cmocka_unit_test(test_only_the_canonical_uuid_is_one),
		cmocka_unit_test(test_uuid_bytes_are_those_written),
		cmocka_unit_test(test_token_is_64_hex_digits),
		cmocka_unit_test(test_sandbox_ids_fit_a_pod_name),
		cmocka_unit_test(test_fresh_sandbox_ids_use_the_whole_alphabet),
		cmocka_unit_test(test_secrets_are_equal_only_byte_for_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
