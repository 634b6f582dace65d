/* key_store.c - claims as JSON in a record log of their own; every answer comes before the call returns. */
/* SPDX-License-Identifier: MIT */
#include "backend/key_store.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

struct key_store {
	struct record_log *log; /* borrowed */
};

struct key_store *
key_store_create(struct record_log *log)
{
	struct key_store *store = alloc_zero(1, sizeof *store);

	store->log = log;
	return store;
}

void
key_store_free(struct key_store *store)
{
	free(store);
}

void
key_store_flush(struct key_store *store)
{
	(void)store;
}

void
key_store_forget(struct key_store *store, const void *arg)
{
	(void)store;
	(void)arg;
}

struct record_key
key_store_key(const char *tenant, const char *name)
{
	return record_key_named(RECORD_KEY, tenant, name);
}

struct json_object *
key_claim_json(const struct key_claim *claim)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "digest", json_object_new_string(claim->digest));
	json_object_object_add(object, "id", json_object_new_string(claim->id));
	json_object_object_add(object, "uid", json_object_new_string(claim->sandbox_uid));
	json_object_object_add(object, "at", json_object_new_double(claim->claimed_at));
	if (claim->home[0] != '\0')
		json_object_object_add(object, "home", json_object_new_string(claim->home));
	if (claim->answer != NULL)
		json_object_object_add(object, "answer", json_object_get(claim->answer));
	return object;
}

static bool
read_word(struct json_object *object, const char *name, char *ret, size_t size)
{
	const char *word = json_object_get_string(json_object_object_get(object, name));

	return word != NULL && text_copy(ret, size, word);
}

bool
key_claim_read(struct json_object *object, struct key_claim *claim)
{
	if (!read_word(object, "home", claim->home, sizeof claim->home))
		claim->home[0] = '\0';
	claim->claimed_at = json_object_get_double(json_object_object_get(object, "at"));
	claim->answer = json_object_object_get(object, "answer");
	return read_word(object, "digest", claim->digest, sizeof claim->digest) &&
		read_word(object, "id", claim->id, sizeof claim->id) &&
		read_word(object, "uid", claim->sandbox_uid, sizeof claim->sandbox_uid);
}

/* The claim that stands at claim->place; *ret_object owns what it borrows. */
static int
claim_load(struct key_store *store, const struct record_key *key, struct key_claim *claim,
	struct json_object **ret_object, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	if (record_log_read(store->log, RECORD_KEY, key, &claim->place, &text, &len, err) < 0)
		return -1;
	*ret_object = json_parse(text, len, err);
	if (*ret_object == NULL || !key_claim_read(*ret_object, claim))
		return err_set(err, ERR_INTERNAL, "what is kept under an Idempotency-Key cannot be read");
	return 0;
}

/*
 * A key that is in the index but whose record cannot be read has been used: never as if it were free. The one
 * exception is a record that was taken back in between, and then the index does not have it any more.
 */
static void
answer_existing(struct key_store *store, const struct record_key *key, struct key_claim *claim, enum err_code code,
	key_store_f *done, void *arg)
{
	AUTO_JSON struct json_object *object = NULL;
	struct record_life life = { 0 };
	struct err err;

	if (record_log_locate(store->log, key, &claim->place, &life) &&
		claim_load(store, key, claim, &object, &err) == 0) {
		claim->ended = life.ended_at > 0;
		err_set(&err, code, "the Idempotency-Key was used before");
		done(claim, code != ERR_NONE ? &err : NULL, arg);
		return;
	}
	err_set(&err, ERR_UNAVAILABLE, "what is kept under this Idempotency-Key cannot be read now; try again");
	done(NULL, &err, arg);
}

void
key_store_get(struct key_store *store, const struct record_key *key, key_store_f *done, void *arg)
{
	struct key_claim claim = { 0 };
	struct record_life life;
	struct err err;

	if (record_log_locate(store->log, key, &claim.place, &life)) {
		answer_existing(store, key, &claim, ERR_NONE, done, arg);
		return;
	}
	err_set(&err, ERR_NOT_FOUND, "the Idempotency-Key is new");
	done(NULL, &err, arg);
}

static void
answer_failed(struct err *err, key_store_f *done, void *arg)
{
	struct err full = *err;

	if (full.code == ERR_BUSY)
		err_set(err, ERR_BUSY,
			"no more Idempotency-Keys can be remembered (idempotency_max_records; %s), and what they "
			"stand for has not ended long enough ago (idempotency_min_seconds): try again later, or "
			"without one",
			full.msg);
	done(NULL, err, arg);
}

void
key_store_put(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg)
{
	AUTO_JSON struct json_object *object = key_claim_json(claim);
	struct key_claim kept = *claim;
	struct err err;
	const char *text;
	size_t len;

	text = json_text(object, &len);
	if (record_log_append(store->log, RECORD_KEY, key, expires_at, text, len, true, &kept.place, &err) == 0)
		done(&kept, NULL, arg);
	else if (err.code == ERR_EXISTS)
		answer_existing(store, key, &kept, ERR_EXISTS, done, arg);
	else
		answer_failed(&err, done, arg);
}

void
key_store_renew(struct key_store *store, const struct record_key *key, const struct key_claim *claim,
	double expires_at, key_store_f *done, void *arg)
{
	AUTO_JSON struct json_object *object = key_claim_json(claim);
	struct key_claim kept = *claim;
	struct err err;
	const char *text;
	size_t len;

	text = json_text(object, &len);
	if (record_log_replace(store->log, RECORD_KEY, key, expires_at, text, len, &kept.place, &err) == 0)
		done(&kept, NULL, arg);
	else
		answer_failed(&err, done, arg);
}

void
key_store_give_up(struct key_store *store, const struct record_key *key, const struct record_location *place)
{
	record_log_release(store->log, key, place);
}

void
key_store_settle(struct key_store *store, const struct record_key *key, double expires_at)
{
	struct record_life life = { .expires_at = expires_at, .ended_at = clock_steady() };

	/* The record on disk says a later expiry, which is what a new index will go by: late is safe. */
	record_log_settle(store->log, key, &life);
}
