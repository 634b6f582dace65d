/*
 * sandbox_key.c - a create with an Idempotency-Key: one sandbox, however often it is asked for.
 *
 * The key is claimed for the id first, then the sandbox is recorded under it, then the
 * claim is renewed with the answer, which from then on is the answer, also when the
 * sandbox is gone. A claim without an answer is of a process that died in between, or
 * that is there just now: who asks again enters the same id itself, and the sandbox
 * table takes one of them. After ENTER_S the sandbox may have been made, used and
 * deleted: then it is not made again.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/idempotency.h"
#include "domain/keys.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { ENTER_S = 60 };

struct keyed_create {
	struct service *service;
	struct sandbox_record record; /* the draft, then what is there */
	struct json_object *env; /* owned; NULL: none */
	struct json_object *made; /* owned: the answer, once there is one */
	struct record_key key;
	struct key_claim claim; /* ours */
	double expires_at; /* of our claim */
	bool first; /* nobody had the key before */
	sandbox_created_f *done;
	void *arg;
};

static void
create_end(struct keyed_create *create, struct json_object *answer, const struct err *why)
{
	struct json_object *made = create->made;
	sandbox_created_f *done = create->done;
	void *arg = create->arg;

	json_object_put(create->env);
	free(create);
	done(answer, why, arg);
	json_object_put(made);
}

static void
create_on_answered(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct keyed_create *create = arg;

	(void)claim;
	if (why == NULL)
		keys_settle(create->service, &create->key, create->expires_at);
	/* Stale: somebody who asked again has just done the same. */
	if (why != NULL && why->code != ERR_STALE)
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = create->record.id },
			"the answer to its Idempotency-Key was not kept: %s", why->msg);
	create_end(create, create->made, NULL);
}

static double
create_expiry(struct keyed_create *create)
{
	create->expires_at = clock_steady() + (double)create->service->config->idempotency_ttl_seconds;
	return create->expires_at;
}

static void
create_answer(struct keyed_create *create)
{
	create->claim.answer = create->made = sandbox_created_json(create->service, &create->record);
	keys_renew(
		create->service, &create->key, &create->claim, create_expiry(create), create_on_answered, create);
}

static void
create_on_entered(const struct sandbox_record *record, bool existing, const struct err *why, void *arg)
{
	struct keyed_create *create = arg;

	(void)existing;
	if (why == NULL) {
		create->record = *record;
		create_answer(create);
		return;
	}
	if (create->first)
		keys_give_up(create->service, &create->key, &create->claim.place);
	create_end(create, NULL, why);
}

static void
create_enter(struct keyed_create *create)
{
	sandbox_enter(create->service, create->env, &create->record, create_on_entered, create);
}

static void create_look(struct keyed_create *create);

static void
create_replay(struct keyed_create *create, struct json_object *answer)
{
	service_count(create->service, METRIC_KEY_REPLAYS, 1);
	create_end(create, answer, NULL);
}

static void
create_on_renewed(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct keyed_create *create = arg;

	if (why == NULL) {
		create->claim.place = claim->place;
		create_enter(create);
	} else if (why->code == ERR_STALE) {
		create_look(create);
	} else {
		create_end(create, NULL, why);
	}
}

/* Somebody has the key. */
static void
create_judge(struct keyed_create *create, const struct key_claim *theirs)
{
	struct sandbox_record there;
	struct err err;

	if (strcmp(theirs->digest, create->claim.digest) != 0) {
		service_count(create->service, METRIC_KEY_CONFLICTS, 1);
		err_set(&err, ERR_KEY_CONFLICT, "this Idempotency-Key was used for another request");
		create_end(create, NULL, &err);
	} else if (theirs->answer != NULL) {
		create_replay(create, theirs->answer);
	} else if (clock_steady() - theirs->claimed_at > ENTER_S &&
		!sandbox_table_find(service_sandboxes(create->service), theirs->id, &there, NULL)) {
		err_set(&err, ERR_OUTCOME_LOST,
			"this request was made before, for the sandbox \"%s\", which is not there: it was never "
			"made, "
			"or it is gone; use another Idempotency-Key to make one",
			theirs->id);
		create_end(create, NULL, &err);
	} else {
		create->first = false;
		memcpy(create->record.id, theirs->id, sizeof create->record.id);
		memcpy(create->claim.id, theirs->id, sizeof create->claim.id);
		create->claim.claimed_at = theirs->claimed_at;
		create->claim.place = theirs->place;
		keys_renew(create->service, &create->key, &create->claim, create_expiry(create), create_on_renewed,
			create);
	}
}

static void
create_on_claimed(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct keyed_create *create = arg;

	if (why == NULL) {
		create->claim.place = claim->place;
		create_enter(create);
	} else if (claim != NULL) {
		create_judge(create, claim);
	} else {
		create_end(create, NULL, why);
	}
}

static void
create_on_looked(const struct key_claim *claim, const struct err *why, void *arg)
{
	struct keyed_create *create = arg;

	if (claim != NULL) {
		create_judge(create, claim);
	} else if (why->code != ERR_NOT_FOUND) {
		create_end(create, NULL, why);
	} else {
		create->first = true;
		memcpy(create->claim.id, create->record.id, sizeof create->claim.id);
		create->claim.claimed_at = clock_steady();
		keys_put(create->service, &create->key, &create->claim, create_expiry(create), create_on_claimed,
			create);
	}
}

static void
create_look(struct keyed_create *create)
{
	keys_get(create->service, &create->key, create_on_looked, create);
}

void
sandbox_create_keyed(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	const struct idempotency_key *key, sandbox_created_f *done, void *arg)
{
	struct keyed_create *create = alloc_zero(1, sizeof *create);
	struct err err;

	create->service = service;
	create->done = done;
	create->arg = arg;
	create->env = json_object_get(spec->env);
	create->key = key_store_key(tenant, key->name);
	memcpy(create->claim.digest, key->digest, sizeof create->claim.digest);
	if (sandbox_draft(service, tenant, spec, &create->record, &err) != 0)
		create_end(create, NULL, &err);
	else
		create_look(create);
}
