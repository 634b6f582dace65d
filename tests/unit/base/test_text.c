/* test_text.c - base64, UTF-8 repair and digests against known answers. */
/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
	const char *plain, *coded;
} rfc4648[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
};

static void
test_base64_of_rfc4648_goes_both_ways(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rfc4648 / sizeof rfc4648[0]; i++) {
		size_t len = strlen(rfc4648[i].plain), out_len;
		uint8_t *data;
		char out[16];

		assert_int_equal(text_base64_size(len), strlen(rfc4648[i].coded));
		text_base64_encode(rfc4648[i].plain, len, out);
		assert_string_equal(out, rfc4648[i].coded);
		assert_int_equal(text_base64_decode(out, strlen(out), &data, &out_len), 0);
		assert_non_null(data);
		assert_int_equal(out_len, len);
		assert_memory_equal(data, rfc4648[i].plain, len);
		free(data);
	}
}

static void
test_base64_carries_every_byte(void **state)
{
	uint8_t in[256], *data;
	char out[345];
	size_t len;

	(void)state;
	for (int i = 0; i < 256; i++)
		in[i] = (uint8_t)i;
	for (size_t n = 250; n <= 256; n++) {
		text_base64_encode(in, n, out);
		assert_int_equal(strlen(out), text_base64_size(n));
		assert_int_equal(text_base64_decode(out, strlen(out), &data, &len), 0);
		assert_int_equal(len, n);
		assert_memory_equal(data, in, n);
		free(data);
	}
}

static void
test_base64_that_is_not_canonical_is_refused(void **state)
{
	static const char *const wrong[] = { "Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm8", "=",
		"==", "====", "A===", "Zg==Zg==", "Zm9v\n", "Zm9v\nZm9v", " Zm9", "Zm9 ", "Zm-_",
		"Zm9v====", "Zm=v", "Z=9v", "Zm9\xff", "Zm8=\n" };

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		uint8_t *data = NULL;
		size_t len;

		if (text_base64_decode(wrong[i], strlen(wrong[i]), &data, &len) == 0)
			fail_msg("accepted '%s'", wrong[i]);
		assert_null(data);
	}
}

#define FFFD "\xef\xbf\xbd"
#define CASE(in, out)                                                                                              \
	{                                                                                                          \
		in, sizeof in - 1, out, sizeof out - 1                                                             \
	}

static const struct {
	const char *in;
	size_t in_len;
	const char *out;
	size_t out_len;
} repairs[] = {
	CASE("", ""),
	CASE("plain", "plain"),
	CASE("a\0b", "a\0b"),
	CASE("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
	CASE("\377\376ok", FFFD FFFD "ok"),
	CASE("\xe2\x82", FFFD),
	CASE("\xe2\x82z", FFFD "z"),
	CASE("\xf0\x9f\x98", FFFD),
	CASE("\xf0\x9f\x98\xf0\x9f\x98\x80", FFFD "\xf0\x9f\x98\x80"),
	CASE("\x80\xbf", FFFD FFFD),
	CASE("\xc0\xaf", FFFD FFFD),
	CASE("\xc1\xbf", FFFD FFFD),
	CASE("\xe0\x80\xaf", FFFD FFFD FFFD),
	CASE("\xe0\xa0", FFFD),
	CASE("\xed\xa0\x80", FFFD FFFD FFFD),
	CASE("\xed\x9f\xbf", "\xed\x9f\xbf"),
	CASE("\xf0\x80\x80\xaf", FFFD FFFD FFFD FFFD),
	CASE("\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD),
	CASE("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"),
	CASE("\xf5\x80", FFFD FFFD),
	/* The example of the Unicode standard, table 3-8. */
	CASE("\x61\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63\x80\xbf\x64", "a" FFFD FFFD FFFD "b" FFFD "c" FFFD FFFD "d"),
};

static void
test_utf8_repair_replaces_each_maximal_part(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof repairs / sizeof repairs[0]; i++) {
		/* A copy without a NUL behind, so that tools see any read beyond the end. */
		char *in = malloc(repairs[i].in_len + (repairs[i].in_len == 0)), *out;
		bool same = repairs[i].in_len == repairs[i].out_len &&
			memcmp(repairs[i].in, repairs[i].out, repairs[i].in_len) == 0;
		size_t len;

		memcpy(in, repairs[i].in, repairs[i].in_len);
		assert_int_equal(text_utf8_repair(in, repairs[i].in_len, &out, &len), 0);
		assert_int_equal(len, repairs[i].out_len);
		assert_memory_equal(out, repairs[i].out, len + 1);
		assert_true(text_is_utf8(out, len));
		assert_int_equal(text_is_utf8(in, repairs[i].in_len), same);
		free(in);
		free(out);
	}
}

static void
test_sha256_matches_fips_180(void **state)
{
	char hex[TEXT_SHA256_HEX_SIZE];

	(void)state;
	text_sha256_hex("abc", 3, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	text_sha256_hex(NULL, 0, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void
test_utf8_mend_works_in_place(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\xe2\x82\xac\xc3\xa4", "\xe2\x82\xac\xc3\xa4" },
		{ "\"x\xc3\" is", "\"x?\" is" },
		{ "\xf0\x9f\x98", "?" },
		{ "a\377\376\xe2\x82z\xe2\x82\xac", "a???z\xe2\x82\xac" },
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_true(text_copy(text, sizeof text, cases[i].in));
		text_utf8_mend(text);
		assert_string_equal(text, cases[i].out);
	}
}

static void
test_utf8_whole_leaves_out_a_cut_character(void **state)
{
	static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80";
	static const size_t whole[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10 };

	(void)state;
	for (size_t len = 0; len < sizeof text; len++)
		assert_int_equal(text_utf8_whole(text, len), whole[len]);
	assert_int_equal(text_utf8_whole("\x80\x80\x80\x80\x80", 5), 5);
	assert_int_equal(text_utf8_whole("\xff", 1), 1);
}

static void
test_copy_fits_whole_or_not_at_all(void **state)
{
	char dst[4] = "old";

	(void)state;
	assert_false(text_copy(dst, sizeof dst, "four"));
	assert_string_equal(dst, "old");
	assert_true(text_copy(dst, sizeof dst, "abc"));
	assert_string_equal(dst, "abc");
	assert_true(text_copy(dst, sizeof dst, ""));
	assert_string_equal(dst, "");
	assert_false(text_copy(dst, 0, ""));
}

static void
test_hmac_sha256_matches_rfc_4231(void **state)
{
	char hex[TEXT_SHA256_HEX_SIZE], key[131];

	(void)state;
	text_hmac_sha256_hex("Jefe", 4, "what do ya want for nothing?", 28, hex);
	assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	text_hmac_sha256_hex(key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54, hex);
	assert_string_equal(hex, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64_of_rfc4648_goes_both_ways),
		cmocka_unit_test(test_base64_carries_every_byte),
		cmocka_unit_test(test_base64_that_is_not_canonical_is_refused),
		cmocka_unit_test(test_utf8_repair_replaces_each_maximal_part),
		cmocka_unit_test(test_sha256_matches_fips_180),
		cmocka_unit_test(test_hmac_sha256_matches_rfc_4231),
		cmocka_unit_test(test_utf8_mend_works_in_place),
		cmocka_unit_test(test_utf8_whole_leaves_out_a_cut_character),
		cmocka_unit_test(test_copy_fits_whole_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
