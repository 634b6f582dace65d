/*
 * key_share.c - calls on their way, and claims as they stand in Redis.
 *
 * A first claim that was made and not heard of would keep the key from whoever asks again, so it is given up. One that
 * was renewed and not heard of stands: what it stands for may be there, and whoever asks again goes on from it.
 *
 * What is known to stand, or to be given up, is kept for a Redis that lacks it.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/key_share.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "cluster/key_kept.h"
#include "cluster/key_script.h"
#include "cluster/shared_return.h"
#include "redis/client.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { DIGEST_SIZE = 2 * sizeof(struct record_key) + 1, KEEP_LEAST_MS = 1000, AGAIN_AT_ONCE = 64 };

struct key_call {
	LIST_ENTRY(key_call) link;
	struct key_share *share;
	struct record_key key;
	struct record_location place; /* of the claim that is being made; segment 0: none is */
	bool first; /* it is the key's first */
	struct key_word *word; /* owned: what is kept once it is made; NULL: nothing is made */
	key_store_f *done; /* NULL: nobody wants to know */
	void *arg;
};

struct key_share {
	struct key_share_options options;
	LIST_HEAD(, key_call) calls;
	bool over;
	struct key_kept *kept;
	uint32_t again; /* words that are being said again */
	bool walks; /* some of them may not have got through */
	struct shared_return back;
	char identity[REDIS_IDENTITY_SIZE]; /* of Redis, when it last came up */
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
	free(call->word);
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

/* Its first claim may be on its way from another server, to a Redis that lacks it. */
static bool
may_be_lost(const struct key_share *share, struct err *err)
{
	if (!shared_return_is_fresh(&share->back, clock_boot_ms()))
		return false;
	err_set(err, ERR_UNAVAILABLE,
		"Redis has just come back, and may not have been told of this Idempotency-Key yet");
	return true;
}

static void
on_none(struct key_call *call)
{
	struct err err;

	if (!may_be_lost(call->share, &err))
		err_set(&err, ERR_NOT_FOUND, "the Idempotency-Key is new");
	call_end(call, NULL, &err);
}

static void
on_made(struct key_call *call)
{
	const struct key_word *there = key_kept_find(call->share->kept, &call->key);
	struct key_claim made = { .place = call->place };

	/* A copy of Redis may have that one still. */
	if (call->first && there != NULL && there->given_up)
		memcpy(call->word->before, there->mark, sizeof there->mark);
	key_kept_put(call->share->kept, STEAL_PTR(call->word), clock_boot_ms());
	call_end(call, &made, NULL);
}

static void
on_word(struct key_call *call, const struct redis_answer *answer)
{
	const struct redis_answer *word = redis_answer_item(answer, 0);
	struct err err;

	if (redis_answer_is(word, "there")) {
		on_there(call, answer);
	} else if (redis_answer_is(word, "none")) {
		on_none(call);
	} else if (redis_answer_is(word, "stale")) {
		err_set(&err, ERR_STALE, "the Idempotency-Key was claimed anew meanwhile");
		call_end(call, NULL, &err);
	} else if (redis_answer_is(word, "made") && call->word != NULL) {
		on_made(call);
	} else {
		err_set(&err, ERR_INTERNAL, "Redis gives an answer of another kind");
		call_end(call, NULL, &err);
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
	call->word = key_word_new(&call->key, text.claim, text.len);
	memcpy(call->word->mark, mark, sizeof mark);
	if (before != NULL)
		memcpy(call->word->before, before, sizeof call->word->before);
	call->word->claimed_at = claim->claimed_at;
	call->word->expires_at = expires_at;
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
	struct key_call *call = call_new(share, key, done, arg);
	struct err err;

	if (may_be_lost(share, &err))
		call_end(call, NULL, &err);
	else
		claim_send(call, claim, expires_at, NULL);
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

static void
keep_given_up(struct key_share *share, const struct record_key *key, const char *mark)
{
	const struct key_word *there = key_kept_find(share->kept, key);
	struct key_word *word;

	if (there != NULL && strcmp(there->mark, mark) != 0)
		return;
	word = key_word_new(key, "", 0);
	snprintf(word->mark, sizeof word->mark, "%s", mark);
	word->given_up = true;
	key_kept_put(share->kept, word, clock_boot_ms());
}

void
key_share_give_up(struct key_share *share, const struct record_key *key, const struct record_location *place)
{
	char digest[DIGEST_SIZE], mark[ID_UUID_SIZE];
	struct key_name name = name_of(share, key, digest);
	struct redis_args args;

	place_text(place, mark);
	keep_given_up(share, key, mark);
	key_script_give_up_args(&args, &name, mark);
	send(share, &key_script_give_up, &args);
}

void
key_share_settle(struct key_share *share, const struct record_key *key, double expires_at)
{
	char digest[DIGEST_SIZE];
	struct key_name name = name_of(share, key, digest);
	struct key_word *word = key_kept_find(share->kept, key);
	struct redis_args args;

	if (word != NULL) {
		word->ended = true;
		word->expires_at = expires_at < word->expires_at ? expires_at : word->expires_at;
	}
	key_script_settle_args(&args, &name, keep_ms(expires_at));
	send(share, &key_script_settle, &args);
}

/* --- once more --- */

static void go_on(struct key_share *share);

static void
on_again(void *ctx, const struct redis_answer *answer)
{
	struct key_share *share = ctx;

	share->again--;
	/* No answer: it begins anew when Redis is back. */
	if (answer->kind != REDIS_LOST && answer->kind != REDIS_LATE)
		go_on(share);
}

static bool
say_again(struct key_share *share, const struct key_word *word)
{
	const struct key_share_options *options = &share->options;
	char digest[DIGEST_SIZE];
	struct key_name name = name_of(share, &word->key, digest);
	struct key_text text = {
		.claim = word->claim, .len = word->len, .mark = word->mark, .keep_ms = keep_ms(word->expires_at)
	};
	struct key_past past = { .before = word->before,
		.age_ms = (int64_t)((clock_steady() - word->claimed_at) * 1000),
		.ended = word->ended };
	struct redis_args args;
	struct err err;

	if (word->given_up)
		key_script_give_up_args(&args, &name, word->mark);
	else
		key_script_again_args(&args, &name, &text, &past);
	return redis_run(options->redis, word->given_up ? &key_script_give_up : &key_script_again, &args,
		       (struct redis_reply_to){ .fn = on_again, .ctx = share, .deadline_ms = options->deadline_ms },
		       &err) == 0;
}

static void
go_on(struct key_share *share)
{
	const struct key_word *word;

	while (share->walks && share->again < AGAIN_AT_ONCE && (word = key_kept_next(share->kept)) != NULL) {
		if (!word->given_up && word->expires_at <= clock_steady())
			continue;
		/* It is down again: begun anew when it is back. */
		if (!say_again(share, word))
			return;
		share->again++;
	}
	if (share->again == 0)
		share->walks = false;
}

void
key_share_on_redis(struct key_share *share, bool up)
{
	const char *identity = redis_identity(share->options.redis);

	if (!up)
		return;
	/* One that keeps it to itself may be another. */
	if (identity[0] == '\0' || strcmp(identity, share->identity) != 0) {
		share->walks = share->back.was_up;
		shared_return_up(&share->back, clock_boot_ms());
	}
	snprintf(share->identity, sizeof share->identity, "%s", identity);
	if (!share->walks)
		return;
	key_kept_walk(share->kept, clock_boot_ms());
	go_on(share);
}

/* --- the share itself --- */

struct key_share *
key_share_new(const struct key_share_options *options)
{
	struct key_share *share = alloc_zero(1, sizeof *share);

	share->options = *options;
	LIST_INIT(&share->calls);
	share->kept = key_kept_new(KEY_KEPT_BYTES);
	key_share_on_redis(share, redis_is_up(options->redis));
	return share;
}

void
key_share_end(struct key_share *share)
{
	struct key_call *call;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	share->over = true;
	redis_forget(share->options.redis, share);
	share->walks = false;
	while ((call = LIST_FIRST(&share->calls)) != NULL) {
		redis_forget(share->options.redis, call);
		call_end(call, NULL, &err);
	}
}

void
key_share_free(struct key_share *share)
{
	if (share == NULL)
		return;
	key_kept_free(share->kept);
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
