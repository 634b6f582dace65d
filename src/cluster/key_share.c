/*
 * key_share.c - calls on their way, and claims as they stand in Redis.
 *
 * A first claim that was made and not heard of would keep the key from whoever asks again, so it is given up. One that
 * was renewed and not heard of stands: what it stands for may be there, and whoever asks again goes on from it.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/key_share.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "cluster/key_script.h"
#include "redis/client.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { DIGEST_SIZE = 2 * sizeof(struct record_key) + 1, KEEP_LEAST_MS = 1000 };

struct key_call {
	LIST_ENTRY(key_call) link;
	struct key_share *share;
	struct record_key key;
	struct record_location place; /* of the claim that is being made; segment 0: none is */
	bool first; /* it is the key's first */
	key_store_f *done; /* NULL: nobody wants to know */
	void *arg;
};

struct key_share {
	struct key_share_options options;
	LIST_HEAD(, key_call) calls;
	bool over;
};

/* --- names --- */

/* Never given before. */
static void
place_make_up(struct record_location *ret_place)
{
	char uuid[ID_UUID_SIZE];
	unsigned int a, b, c, d;

	id_uuid4(uuid);
	/* The digits that say its version are left out. */
	(void)!sscanf(uuid, "%8x-%4x-4%3x-", &a, &b, &c);
	(void)!sscanf(uuid + ID_UUID_SIZE - 1 - 12, "%8x", &d);
	*ret_place = (struct record_location){ .segment = a | 1, .length = d, .offset = (uint64_t)b << 16 | c };
}

static void
place_text(const struct record_location *place, char ret_mark[ID_UUID_SIZE])
{
	snprintf(ret_mark, ID_UUID_SIZE, "%08x-%08x-%016" PRIx64, place->segment, place->length, place->offset);
}

static bool
place_read(const struct redis_answer *mark, struct record_location *ret_place)
{
	return mark->kind == REDIS_STRING &&
		sscanf(mark->text, "%8x-%8x-%16" SCNx64, &ret_place->segment, &ret_place->length,
			&ret_place->offset) == 3;
}

static struct key_name
name_of(const struct key_share *share, const struct record_key *key, char ret_digest[DIGEST_SIZE])
{
	for (size_t i = 0; i < sizeof key->bytes; i++)
		snprintf(ret_digest + 2 * i, 3, "%02x", key->bytes[i]);
	return (struct key_name){ .prefix = share->options.prefix, .digest = ret_digest };
}

static int64_t
keep_ms(double expires_at)
{
	int64_t ms = (int64_t)((expires_at - clock_steady()) * 1000);

	return ms > KEEP_LEAST_MS ? ms : KEEP_LEAST_MS;
}

/* --- answers --- */

static void
call_end(struct key_call *call, const struct key_claim *claim, const struct err *why)
{
	key_store_f *done = call->done;
	void *arg = call->arg;

	LIST_REMOVE(call, link);
	free(call);
	if (done != NULL)
		done(claim, why, arg);
}

/* there, claim, mark, ended, age. Whose claim cannot be read has been made all the same. */
static void
on_there(struct key_call *call, const struct redis_answer *answer)
{
	const struct redis_answer *text = redis_answer_item(answer, 2);
	AUTO_JSON struct json_object *object = NULL;
	struct key_claim claim = { 0 };
	int64_t ended = 0, age_ms = 0;
	struct err err;

	if (text->kind == REDIS_STRING)
		object = json_parse(text->text, text->size, &err);
	if (object == NULL || !key_claim_read(object, &claim) ||
		!place_read(redis_answer_item(answer, 3), &claim.place) ||
		!redis_answer_number(redis_answer_item(answer, 4), &ended) ||
		!redis_answer_number(redis_answer_item(answer, 5), &age_ms)) {
		err_set(&err, ERR_UNAVAILABLE, "what is kept under this Idempotency-Key cannot be read");
		call_end(call, NULL, &err);
		return;
	}
	claim.ended = ended != 0;
	/* Another server's clock says nothing here. */
	claim.claimed_at = clock_steady() - (double)age_ms / 1000;
	if (strcmp(claim.home, call->share->options.replica) == 0)
		claim.home[0] = '\0';
	err_set(&err, ERR_EXISTS, "the Idempotency-Key was used before");
	call_end(call, &claim, call->place.segment != 0 ? &err : NULL);
}

static void
on_word(struct key_call *call, const struct redis_answer *answer)
{
	const struct redis_answer *word = redis_answer_item(answer, 0);
	struct key_claim made = { .place = call->place };
	struct err err;

	if (redis_answer_is(word, "there")) {
		on_there(call, answer);
	} else if (redis_answer_is(word, "none")) {
		err_set(&err, ERR_NOT_FOUND, "the Idempotency-Key is new");
		call_end(call, NULL, &err);
	} else if (redis_answer_is(word, "stale")) {
		err_set(&err, ERR_STALE, "the Idempotency-Key was claimed anew meanwhile");
		call_end(call, NULL, &err);
	} else {
		call_end(call, &made, NULL);
	}
}

static void
on_answer(void *ctx, const struct redis_answer *answer)
{
	struct key_call *call = ctx;
	struct err err;

	if (redis_answer_check(answer, &err) == 0) {
		on_word(call, answer);
		return;
	}
	if (call->first)
		key_share_give_up(call->share, &call->key, &call->place);
	call_end(call, NULL, &err);
}

/* --- calls --- */

static struct key_call *
call_new(struct key_share *share, const struct record_key *key, key_store_f *done, void *arg)
{
	struct key_call *call = alloc_zero(1, sizeof *call);

	call->share = share;
	call->key = *key;
	call->done = done;
	call->arg = arg;
	LIST_INSERT_HEAD(&share->calls, call, link);
	return call;
}

static void
call_send(struct key_call *call, const struct redis_script *script, const struct redis_args *args)
{
	const struct key_share_options *options = &call->share->options;
	struct err err;

	if (call->share->over)
		err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	else if (redis_run(options->redis, script, args,
			 (struct redis_reply_to){
				 .fn = on_answer, .ctx = call, .deadline_ms = options->deadline_ms },
			 &err) == 0)
		return;
	call_end(call, NULL, &err);
}

void
key_share_get(struct key_share *share, const struct record_key *key, key_store_f *done, void *arg)
{
	char digest[DIGEST_SIZE];
	struct key_name name = name_of(share, key, digest);
	struct redis_args args;

	key_script_get_args(&args, &name);
	call_send(call_new(share, key, done, arg), &key_script_get, &args);
}

/* before: the mark of the claim in whose place it is made; NULL: the key should be free. */
static void
claim_send(struct key_call *call, const struct key_claim *claim, double expires_at, const char *before)
{
	struct key_share *share = call->share;
	struct key_claim ours = *claim;
	AUTO_JSON struct json_object *object = NULL;
	char digest[DIGEST_SIZE], mark[ID_UUID_SIZE];
	struct key_name name = name_of(share, &call->key, digest);
	struct key_text text = { .mark = mark, .keep_ms = keep_ms(expires_at) };
	struct redis_args args;

	call->first = before == NULL;
	place_make_up(&call->place);
	place_text(&call->place, mark);
	snprintf(ours.home, sizeof ours.home, "%s", share->options.replica);
	object = key_claim_json(&ours);
	text.claim = json_text(object, &text.len);
	if (before == NULL)
		key_script_put_args(&args, &name, &text);
	else
		key_script_renew_args(&args, &name, before, &text);
	call_send(call, before == NULL ? &key_script_put : &key_script_renew, &args);
}

void
key_share_put(struct key_share *share, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg)
{
	claim_send(call_new(share, key, done, arg), claim, expires_at, NULL);
}

void
key_share_renew(struct key_share *share, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg)
{
	char before[ID_UUID_SIZE];

	place_text(&claim->place, before);
	claim_send(call_new(share, key, done, arg), claim, expires_at, before);
}

/* Nobody is told whether it was done: the key is forgotten at last in any case. */
static void
send(struct key_share *share, const struct redis_script *script, const struct redis_args *args)
{
	struct err err;

	(void)!redis_run(share->options.redis, script, args,
		(struct redis_reply_to){ .deadline_ms = share->options.deadline_ms }, &err);
}

void
key_share_give_up(struct key_share *share, const struct record_key *key, const struct record_location *place)
{
	char digest[DIGEST_SIZE], mark[ID_UUID_SIZE];
	struct key_name name = name_of(share, key, digest);
	struct redis_args args;

	place_text(place, mark);
	key_script_give_up_args(&args, &name, mark);
	send(share, &key_script_give_up, &args);
}

void
key_share_settle(struct key_share *share, const struct record_key *key, double expires_at)
{
	char digest[DIGEST_SIZE];
	struct key_name name = name_of(share, key, digest);
	struct redis_args args;

	key_script_settle_args(&args, &name, keep_ms(expires_at));
	send(share, &key_script_settle, &args);
}

/* --- the share itself --- */

struct key_share *
key_share_new(const struct key_share_options *options)
{
	struct key_share *share = alloc_zero(1, sizeof *share);

	share->options = *options;
	LIST_INIT(&share->calls);
	return share;
}

void
key_share_end(struct key_share *share)
{
	struct key_call *call;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	share->over = true;
	while ((call = LIST_FIRST(&share->calls)) != NULL) {
		redis_forget(share->options.redis, call);
		call_end(call, NULL, &err);
	}
}

void
key_share_free(struct key_share *share)
{
	free(share);
}

void
key_share_forget(struct key_share *share, const void *arg)
{
	struct key_call *call;

	LIST_FOREACH(call, &share->calls, link)
	if (call->arg == arg)
		call->done = NULL;
}
