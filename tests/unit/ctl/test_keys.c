/* test_keys.c - "~" at the beginning of a line, and nowhere else; nothing typed is lost, however it is cut. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct typed {
	struct keys keys;
	char sent[256];
	size_t len;
	enum keys_wish wishes[16];
	size_t wish_count;
};

static void
type(struct typed *typed, const char *text, size_t piece)
{
	size_t len = strlen(text);
	char out[256];

	while (len > 0) {
		size_t want = piece < len ? piece : len, out_len;
		enum keys_wish wish;
		size_t taken = keys_take(&typed->keys, text, want, out, &out_len, &wish);

		assert_true(taken > 0 && taken <= want && out_len <= taken + 1);
		memcpy(typed->sent + typed->len, out, out_len);
		typed->len += out_len;
		if (wish != KEYS_NONE)
			typed->wishes[typed->wish_count++] = wish;
		text += taken;
		len -= taken;
	}
	typed->sent[typed->len] = '\0';
}

static void
test_all_cuts_mean_the_same(void **state)
{
	static const struct {
		const char *typed, *sent;
		enum keys_wish wishes[4];
	} cases[] = {
		{ "ls\r", "ls\r", { 0 } },
		{ "~.", "", { KEYS_END } },
		{ "a~.", "a~.", { 0 } },
		{ "a\r~.", "a\r", { KEYS_END } },
		{ "a\n~d", "a\n", { KEYS_LEAVE } },
		{ "~\x1a~?x", "x", { KEYS_SUSPEND, KEYS_HELP } },
		{ "~~.", "~.", { 0 } },
		{ "~/bin/x", "~/bin/x", { 0 } },
		{ "~\r~.", "~\r", { KEYS_END } },
		{ "cd ~\r", "cd ~\r", { 0 } },
		{ "~~~~\r~~", "~~~\r~", { 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t piece = 1; piece < 9; piece++) {
			struct typed typed = { .len = 0 };

			type(&typed, cases[i].typed, piece);
			assert_string_equal(typed.sent, cases[i].sent);
			assert_memory_equal(typed.wishes, cases[i].wishes, sizeof cases[i].wishes);
		}
	}
}

static void
test_help_names_every_wish(void **state)
{
	(void)state;
	for (const char *key = ".d?~"; *key != '\0'; key++) {
		char shown[] = { '~', *key, ' ', '\0' };

		assert_non_null(strstr(keys_help, shown));
	}
	assert_non_null(strstr(keys_help, "~^Z"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_cuts_mean_the_same),
		cmocka_unit_test(test_help_names_every_wish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
