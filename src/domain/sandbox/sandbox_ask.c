/*
 * sandbox_ask.c - what Redis is asked before it is done here: changes and deletions that other servers see, too, ends by a
 * rule, and ids that only others may know.
 *
 * What an answer says about the table is in it by then. A deletion of another server's sandbox hides it here at once; its
 * home hears of it and removes it.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "cluster/sandbox_share.h"
#include "conf/config.h"
#include "redis/answer.h"
#include "redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sandbox_ask {
	LIST_ENTRY(sandbox_ask) link;
	struct service *service;
	struct sandbox_record record; /* as it was when it was asked; of a look only tenant and id */
	uint32_t slot;
	enum expiry_rule rule; /* EXPIRY_NEVER: no rule takes it */
	bool adopts;
	sandbox_changed_f *changed; /* one of both, or none */
	sandbox_told_f *told;
	void *arg;
};

static struct sandbox_ask *
ask_new(struct service *service, const struct sandbox_record *record)
{
	struct sandbox_ask *ask = alloc_zero(1, sizeof *ask);

	ask->service = service;
	ask->record = *record;
	ask->rule = EXPIRY_NEVER;
	LIST_INSERT_HEAD(&service->asks, ask, link);
	return ask;
}

static void
ask_free(struct sandbox_ask *ask)
{
	if (ask->rule != EXPIRY_NEVER)
		ask->service->reaps--;
	ask->service->adoptions -= ask->adopts;
	LIST_REMOVE(ask, link);
	free(ask);
}

static void
ask_end(struct sandbox_ask *ask, const struct sandbox_record *record, const struct err *why)
{
	sandbox_changed_f *changed = ask->changed;
	sandbox_told_f *told = ask->told;
	void *arg = ask->arg;

	ask_free(ask);
	if (changed != NULL)
		changed(record, why, arg);
	else if (told != NULL)
		told(why, arg);
}

void
sandbox_ask_end_all(struct service *service)
{
	struct sandbox_ask *ask;
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "this server process stops; ask again");
	while ((ask = LIST_FIRST(&service->asks)) != NULL) {
		sandbox_share_forget(service->sandboxes, ask);
		ask_end(ask, NULL, &err);
	}
}

/* --- changes --- */

/* It is here and Redis does not know it: it was emptied, say, and is about to be told. */
static void
ask_not_known(struct sandbox_ask *ask)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, "Redis does not know the sandbox \"%s\" just now; try again",
		ask->record.id);
	ask_end(ask, NULL, &err);
}

static void
patch_on_answer(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_ask *ask = arg;
	struct sandbox_record record;
	struct err err;

	if (why != NULL)
		ask_end(ask, NULL, why);
	else if (sandbox_lookup(ask->service, ask->record.tenant, ask->record.id, &record, NULL, &err) != 0)
		ask_end(ask, NULL, &err);
	else if (answer->result != SHARE_DONE)
		ask_not_known(ask);
	else
		ask_end(ask, &record, NULL);
}

void
sandbox_ask_patch(struct service *service, const struct sandbox_record *record, const struct sandbox_change *change,
	sandbox_changed_f *done, void *arg)
{
	struct sandbox_ask *ask = ask_new(service, record);
	struct sandbox_patch_fields fields = {
		.labels = change->labels != NULL ? json_text(change->labels, NULL) : NULL,
		.ttl_ms = change->ttl_ms,
		.idle_timeout_ms = change->idle_timeout_ms,
	};
	struct err err;

	ask->changed = done;
	ask->arg = arg;
	if (sandbox_share_patch(service->sandboxes, &ask->record, &fields,
		    (struct share_to){ .fn = patch_on_answer, .arg = ask }, &err) != 0)
		ask_end(ask, NULL, &err);
}

/* --- deletions of another server's --- */

static int
change_ends(struct sandbox_record *record, void *arg, struct err *err)
{
	struct mirror_place *place = arg;

	if (record->status == SANDBOX_DELETING || !sandbox_is_foreign(record))
		return err_set(err, ERR_CONFLICT, "it goes already");
	record->status = SANDBOX_DELETING;
	record->ready = false;
	record->status_ms = clock_boot_ms();
	snprintf(record->reap_rule, sizeof record->reap_rule, "%s", SANDBOX_RULE_DELETE);
	place->record = *record;
	return 0;
}

static void
hide(struct sandbox_ask *ask)
{
	struct shm_sandboxes *table = service_sandboxes(ask->service);
	struct sandbox_record there;
	struct mirror_place place;
	struct err err;

	if (!sandbox_table_find(table, ask->record.id, &there, &place.slot) ||
		sandbox_table_change(table, place.slot, ask->record.uid, change_ends, &place, &err) != 0)
		return;
	service_count(ask->service, METRIC_SANDBOXES_DELETED, 1);
	sandbox_heard(ask->service, MIRROR_ENDS, &place);
}

static void
gone_on_answer(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_ask *ask = arg;

	if (why == NULL && answer->result != SHARE_GONE) {
		ask_not_known(ask);
		return;
	}
	if (why == NULL)
		hide(ask);
	ask_end(ask, NULL, why);
}

static void
delete_on_answer(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_ask *ask = arg;
	struct err err;

	if (why != NULL) {
		ask_end(ask, NULL, why);
	} else if (answer->result == SHARE_DONE) {
		hide(ask);
		ask_end(ask, NULL, NULL);
	} else if (sandbox_share_look(ask->service->sandboxes, ask->record.tenant, ask->record.id,
			   (struct share_to){ .fn = gone_on_answer, .arg = ask }, &err) != 0) {
		ask_end(ask, NULL, &err);
	}
}

void
sandbox_ask_delete(struct service *service, const struct sandbox_record *record, sandbox_told_f *done, void *arg)
{
	struct sandbox_ask *ask = ask_new(service, record);
	struct err err;

	ask->told = done;
	ask->arg = arg;
	if (sandbox_share_delete(service->sandboxes, &ask->record, SANDBOX_RULE_DELETE, false,
		    (struct share_to){ .fn = delete_on_answer, .arg = ask }, &err) != 0)
		ask_end(ask, NULL, &err);
}

/* --- ends by a rule --- */

/*
 * Deleted in Redis, it goes, whatever has happened since. Used elsewhere, it is judged anew. One that Redis does not know
 * is about to be told of, and judged then; but nobody tells of a doubtful one.
 */
static void
reap_on_answer(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_ask *ask = arg;
	struct err err;

	if (why == NULL && (answer->result == SHARE_DONE || ask->rule == EXPIRY_DOUBTFUL))
		/* Its client was faster. */
		(void)!sandbox_reap_now(ask->service, ask->slot, ask->record.uid, NULL, ask->rule, &err);
	ask_end(ask, NULL, why);
}

static bool
is_asked(const struct service *service, const char *uid)
{
	const struct sandbox_ask *ask;

	LIST_FOREACH(ask, &service->asks, link)
	if (ask->rule != EXPIRY_NEVER && strcmp(ask->record.uid, uid) == 0)
		return true;
	return false;
}

int
sandbox_ask_reap(struct service *service, uint32_t slot, const struct sandbox_record *judged, enum expiry_rule rule,
	struct err *err)
{
	struct sandbox_ask *ask;

	if (judged->status == SANDBOX_DELETING || is_asked(service, judged->uid))
		return err_set(err, ERR_CONFLICT, "it is being deleted already");
	ask = ask_new(service, judged);
	ask->slot = slot;
	ask->rule = rule;
	service->reaps++;
	if (sandbox_share_delete(service->sandboxes, &ask->record, expiry_rule_name(rule), true,
		    (struct share_to){ .fn = reap_on_answer, .arg = ask }, err) == 0)
		return 0;
	ask_free(ask);
	return -1;
}

/* --- sandboxes that have lost their server --- */

static int
change_env(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)err;
	record->env = *(const struct record_location *)arg;
	return 0;
}

/* Without it, a sandbox that is still to be made would be another one. */
static int
adopt_env(struct sandbox_ask *ask, uint32_t slot, struct sandbox_record *record, const struct redis_answer *env)
{
	AUTO_JSON struct json_object *value = NULL;
	struct err err;

	if (env == NULL || env->kind != REDIS_STRING || !sandbox_is_being_made(record))
		return 0;
	value = json_parse(env->text, env->size, &err);
	if (value != NULL && sandbox_env_store(ask->service, value, record, &err) == 0 &&
		sandbox_table_change(
			service_sandboxes(ask->service), slot, record->uid, change_env, &record->env, &err) == 0)
		return 0;
	sandbox_fail(ask->service, slot, record->uid, err.msg);
	return -1;
}

static void
adopt_on_answer(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_ask *ask = arg;
	struct sandbox_record record;
	struct err err;
	uint32_t slot;

	if (why == NULL && answer->result == SHARE_MOVED)
		/* All of them are compared now and then. */
		(void)!sandbox_share_refresh(
			ask->service->sandboxes, ask->record.id, ask->record.uid, (struct share_to){ 0 }, &err);
	else if (why == NULL && answer->result == SHARE_DONE &&
		sandbox_table_find(service_sandboxes(ask->service), ask->record.id, &record, &slot) &&
		strcmp(record.uid, ask->record.uid) == 0 && !sandbox_is_foreign(&record) &&
		adopt_env(ask, slot, &record, answer->env) == 0)
		log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = record.id },
			"taken over: the server %s that had it is gone", ask->record.home);
	ask_end(ask, NULL, why);
}

void
sandbox_adopt(struct service *service, const struct sandbox_record *record)
{
	struct sandbox_ask *ask = ask_new(service, record);
	struct err err;

	ask->adopts = true;
	service->adoptions++;
	/* Else it is asked again soon. */
	if (sandbox_share_adopt(service->sandboxes, &ask->record, service->config->redis_replica_seconds * 1000,
		    (struct share_to){ .fn = adopt_on_answer, .arg = ask }, &err) != 0)
		ask_free(ask);
}

uint32_t
sandbox_adoptions(const struct service *service)
{
	return service->adoptions;
}

/* --- ids that are not known here --- */

/* What is remembered elsewhere is remembered here, too. */
static void
remember(struct sandbox_ask *ask, const char *rule)
{
	char known[SANDBOX_RULE_SIZE];

	if (sandbox_tombstone_find(ask->service, ask->record.tenant, ask->record.id, known))
		return;
	snprintf(ask->record.reap_rule, sizeof ask->record.reap_rule, "%s", rule);
	sandbox_tombstone_put(ask->service, &ask->record);
}

static void
look_on_answer(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct sandbox_ask *ask = arg;
	struct err err;

	if (why != NULL) {
		ask_end(ask, NULL, why);
	} else if (answer->result == SHARE_STRANGE) {
		err_set(&err, ERR_UNAVAILABLE,
			"the sandbox \"%s\" is of a server of another version, which this one does not understand",
			ask->record.id);
		ask_end(ask, NULL, &err);
	} else {
		if (answer->result == SHARE_GONE)
			remember(ask, answer->rule);
		ask_end(ask, NULL, NULL);
	}
}

bool
sandbox_must_look(struct service *service, const char *tenant, const char *id)
{
	struct sandbox_record record;
	char rule[SANDBOX_RULE_SIZE];

	if (service->sandboxes == NULL || sandbox_table_find(service_sandboxes(service), id, &record, NULL))
		return false;
	/* It may have been made anew elsewhere, which nobody can say now. */
	return redis_is_up(service->share->redis) || !sandbox_tombstone_find(service, tenant, id, rule);
}

int
sandbox_look_start(struct service *service, const char *tenant, const char *id, sandbox_told_f *done, void *arg,
	struct sandbox_ask **ret_look, struct err *err)
{
	struct sandbox_record nobody = { 0 };
	struct sandbox_ask *ask;

	snprintf(nobody.tenant, sizeof nobody.tenant, "%s", tenant);
	snprintf(nobody.id, sizeof nobody.id, "%s", id);
	ask = ask_new(service, &nobody);
	ask->told = done;
	ask->arg = arg;
	if (sandbox_share_look(service->sandboxes, tenant, id,
		    (struct share_to){ .fn = look_on_answer, .arg = ask }, err) != 0) {
		ask_free(ask);
		return -1;
	}
	*ret_look = ask;
	return 0;
}

void
sandbox_look_cancel(struct sandbox_ask *look)
{
	sandbox_share_forget(look->service->sandboxes, look);
	ask_free(look);
}
