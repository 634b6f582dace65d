/* idempotency.c - the digest of a request: fed piece by piece, so that a big body is not copied. */
/* SPDX-License-Identifier: MIT */
#include "domain/idempotency.h"
#include "base/alloc.h"
#include "base/cleanup.h"

#include <json-c/json.h>
#include <sha2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each piece with its length in front, so that no two lists of pieces look the same. */
static void
feed(SHA2_CTX *ctx, char kind, const char *bytes, size_t len)
{
	uint8_t head[9] = { (uint8_t)kind };

	for (int i = 0; i < 8; i++)
		head[1 + i] = (uint8_t)((uint64_t)len >> (8 * i));
	SHA256Update(ctx, head, sizeof head);
	SHA256Update(ctx, (const uint8_t *)bytes, len);
}

struct member {
	const char *name;
	struct json_object *value;
};

static int
compare_members(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->name, ((const struct member *)b)->name);
}

static bool
is_skipped(const char *name, const char *const *skipped)
{
	for (; skipped != NULL && *skipped != NULL; skipped++)
		if (strcmp(name, *skipped) == 0)
			return true;
	return false;
}

static void feed_value(SHA2_CTX *ctx, struct json_object *value);

/* Names are free of NUL and not repeated: the parser sees to it. */
static void
feed_object(SHA2_CTX *ctx, struct json_object *object, const char *const *skipped)
{
	size_t n = 0;
	AUTO_FREE struct member *members = alloc_zero(
		(size_t)json_object_object_length(object) + 1, sizeof *members);

	json_object_object_foreach(object, name, value)
	{
		if (value != NULL && !is_skipped(name, skipped))
			members[n++] = (struct member){ name, value };
	}
	qsort(members, n, sizeof *members, compare_members);
	feed(ctx, '{', "", 0);
	for (size_t i = 0; i < n; i++) {
		feed(ctx, 'n', members[i].name, strlen(members[i].name));
		feed_value(ctx, members[i].value);
	}
	feed(ctx, '}', "", 0);
}

/* Not deeper than the parser lets a body be. */
static void
feed_value(SHA2_CTX *ctx, struct json_object *value)
{
	size_t len;
	const char *text;

	switch (json_object_get_type(value)) {
	case json_type_object:
		feed_object(ctx, value, NULL);
		return;
	case json_type_array:
		feed(ctx, '[', "", 0);
		for (size_t i = 0; i < json_object_array_length(value); i++)
			feed_value(ctx, json_object_array_get_idx(value, i));
		feed(ctx, ']', "", 0);
		return;
	case json_type_string:
		feed(ctx, 's', json_object_get_string(value), (size_t)json_object_get_string_len(value));
		return;
	case json_type_null:
	case json_type_boolean:
	case json_type_int:
	case json_type_double:
		text = json_object_to_json_string_length(value, JSON_C_TO_STRING_PLAIN, &len);
		feed(ctx, 'v', text, len);
		return;
	}
}

void
idempotency_digest(const char *route, const char *id, struct json_object *body, const char *const *skipped,
	char ret_digest[TEXT_SHA256_HEX_SIZE])
{
	uint8_t digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	feed(&ctx, 'r', route, strlen(route));
	feed(&ctx, 'i', id, strlen(id));
	feed_object(&ctx, body, skipped);
	SHA256Final(digest, &ctx);
	for (size_t i = 0; i < sizeof digest; i++)
		snprintf(ret_digest + 2 * i, 3, "%02x", digest[i]);
}
