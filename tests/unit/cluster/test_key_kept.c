/* test_key_kept.c - words about keys: the newest of each, no more than fit, none for too long, and walks through all of them. */
/* SPDX-License-Identifier: MIT */
#include "cluster/key_kept.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct record_key
key_of(uint32_t n)
{
	struct record_key key = { 0 };

	/* All in a few buckets. */
	memcpy(key.bytes + 2, &n, sizeof n);
	key.bytes[1] = (uint8_t)(n % 3);
	return key;
}

static void
say(struct key_kept *kept, uint32_t n, const char *claim, int64_t now_ms)
{
	struct record_key key = key_of(n);

	key_kept_put(kept, key_word_new(&key, claim, strlen(claim)), now_ms);
}

static const char *
said(struct key_kept *kept, uint32_t n)
{
	struct record_key key = key_of(n);
	const struct key_word *word = key_kept_find(kept, &key);

	return word != NULL ? word->claim : "-";
}

static void
test_the_newest_word_of_each_key(void **state)
{
	struct key_kept *kept = key_kept_new(KEY_KEPT_BYTES);

	(void)state;
	say(kept, 1, "one", 1000);
	say(kept, 4, "four", 1000);
	say(kept, 1, "uno", 1001);
	assert_string_equal(said(kept, 1), "uno");
	assert_string_equal(said(kept, 4), "four");
	assert_string_equal(said(kept, 7), "-");
	key_kept_free(kept);
}

static void
test_what_is_old_goes(void **state)
{
	struct key_kept *kept = key_kept_new(KEY_KEPT_BYTES);

	(void)state;
	say(kept, 1, "one", 1000);
	say(kept, 2, "two", 2000);
	say(kept, 3, "three", 1000 + KEY_KEPT_MS);
	assert_string_equal(said(kept, 1), "one");
	key_kept_walk(kept, 1001 + KEY_KEPT_MS);
	assert_string_equal(said(kept, 1), "-");
	say(kept, 4, "four", 2001 + KEY_KEPT_MS);
	assert_string_equal(said(kept, 2), "-");
	assert_string_equal(said(kept, 3), "three");
	key_kept_free(kept);
}

static void
test_the_oldest_make_room(void **state)
{
	const size_t each = sizeof(struct key_word) + sizeof "claim";
	struct key_kept *kept = key_kept_new(10 * each);
	unsigned walked = 0;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++)
		say(kept, n, "claim", 1000);
	assert_string_equal(said(kept, 989), "-");
	assert_string_equal(said(kept, 990), "claim");
	for (key_kept_walk(kept, 1000); key_kept_next(kept) != NULL; walked++)
		;
	assert_int_equal(walked, 10);
	key_kept_free(kept);
}

static void
test_a_walk_goes_on_while_words_come_and_go(void **state)
{
	const size_t each = sizeof(struct key_word) + sizeof "0";
	struct key_kept *kept = key_kept_new(4 * each);

	(void)state;
	assert_null(key_kept_next(kept));
	for (uint32_t n = 0; n < 4; n++) {
		char claim[2] = { (char)('0' + n) };

		say(kept, n, claim, 1000);
	}
	key_kept_walk(kept, 1000);
	assert_string_equal(key_kept_next(kept)->claim, "3");
	say(kept, 2, "2", 1000); /* the next one: it was said to whoever is there now */
	say(kept, 5, "5", 1000); /* the oldest goes */
	assert_string_equal(key_kept_next(kept)->claim, "1");
	assert_null(key_kept_next(kept));
	assert_null(key_kept_next(kept));
	key_kept_free(kept);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_newest_word_of_each_key),
		cmocka_unit_test(test_what_is_old_goes),
		cmocka_unit_test(test_the_oldest_make_room),
		cmocka_unit_test(test_a_walk_goes_on_while_words_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
