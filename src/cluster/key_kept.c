/* key_kept.c - a queue by age, and buckets to find a key in; keys are digests, so their first bytes spread them. */
/* SPDX-License-Identifier: MIT */
#include "cluster/key_kept.h"
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 4096 };

TAILQ_HEAD(key_words, key_word);

struct key_kept {
	size_t bytes, max_bytes;
	struct key_words words; /* the newest first */
	struct key_word *next; /* of the walk */
	LIST_HEAD(key_bucket, key_word) buckets[BUCKETS];
};

static struct key_bucket *
bucket_of(struct key_kept *kept, const struct record_key *key)
{
	return &kept->buckets[(key->bytes[0] << 8 | key->bytes[1]) % BUCKETS];
}

static size_t
size_of(const struct key_word *word)
{
	return sizeof *word + word->len + 1;
}

static void
drop(struct key_kept *kept, struct key_word *word)
{
	if (kept->next == word)
		kept->next = TAILQ_NEXT(word, link);
	TAILQ_REMOVE(&kept->words, word, link);
	LIST_REMOVE(word, same);
	kept->bytes -= size_of(word);
	free(word);
}

static void
drop_old(struct key_kept *kept, int64_t now_ms)
{
	struct key_word *oldest;

	while ((oldest = TAILQ_LAST(&kept->words, key_words)) != NULL &&
		(kept->bytes > kept->max_bytes || now_ms - oldest->said_ms > KEY_KEPT_MS))
		drop(kept, oldest);
}

struct key_kept *
key_kept_new(size_t max_bytes)
{
	struct key_kept *kept = alloc_zero(1, sizeof *kept);

	kept->max_bytes = max_bytes;
	TAILQ_INIT(&kept->words);
	return kept;
}

void
key_kept_free(struct key_kept *kept)
{
	struct key_word *word;

	if (kept == NULL)
		return;
	while ((word = TAILQ_FIRST(&kept->words)) != NULL)
		drop(kept, word);
	free(kept);
}

struct key_word *
key_word_new(const struct record_key *key, const char *claim, size_t len)
{
	struct key_word *word = alloc_zero(1, sizeof *word + len + 1);

	word->key = *key;
	word->len = len;
	memcpy(word->claim, claim, len);
	return word;
}

struct key_word *
key_kept_find(struct key_kept *kept, const struct record_key *key)
{
	struct key_word *word;

	LIST_FOREACH(word, bucket_of(kept, key), same)
	if (memcmp(&word->key, key, sizeof *key) == 0)
		return word;
	return NULL;
}

void
key_kept_put(struct key_kept *kept, struct key_word *word, int64_t now_ms)
{
	struct key_word *before = key_kept_find(kept, &word->key);

	if (before != NULL)
		drop(kept, before);
	word->said_ms = now_ms;
	TAILQ_INSERT_HEAD(&kept->words, word, link);
	LIST_INSERT_HEAD(bucket_of(kept, &word->key), word, same);
	kept->bytes += size_of(word);
	drop_old(kept, now_ms);
}

void
key_kept_walk(struct key_kept *kept, int64_t now_ms)
{
	drop_old(kept, now_ms);
	kept->next = TAILQ_FIRST(&kept->words);
}

const struct key_word *
key_kept_next(struct key_kept *kept)
{
	const struct key_word *word = kept->next;

	if (word != NULL)
		kept->next = TAILQ_NEXT(word, link);
	return word;
}
