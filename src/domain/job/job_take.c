/*
 * job_take.c - the live jobs of a server that is gone, taken over: from then on they are jobs of this one.
 *
 * Whoever can ask a job's agent claims it; the claim is one step in Redis, and only while the old home is silent there. A
 * claimed job gets a record here, as if a process of this server had died with it, and exec_resume() does what it does
 * then: asks the agent, goes on waiting for what runs, and ends as never started only what the agent has barred. An old
 * home that comes back finds its job claimed and steps back; should both drive it for a while, the agent knows the job
 * by its id and starts it once, and the first end in Redis stands.
 *
 * Whoever claims may die before the job has its record here, or never hear that it has it: then it is a job of this
 * server that nothing here knows, and claimed once more.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec.h"
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/config.h"
#include "redis/answer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The jobs of one server, one after the other. */
struct job_taking {
	LIST_ENTRY(job_taking) link;
	struct service *service;
	char server[ID_UUID_SIZE];
	bool last_word; /* this server also gives up those of a host that is gone */
	char cursor[32]; /* of the next page; "0": there is none */
	struct job_record *jobs; /* of this page; owned */
	size_t count, at;
	struct json_object *spec; /* of the job at `at`, claimed; owned */
	struct sandbox_ask *look; /* is its sandbox known to anybody? */
	uint32_t taken, left;
	service_taken_f *done;
	void *arg;
};

static void taking_page(struct job_taking *taking);
static void taking_step(struct job_taking *taking);

struct json_object *
job_take_json(const struct job_record *record, bool base64)
{
	struct json_object *take = json_object_new_object();

	json_object_object_add(take, "timeout_ms", json_object_new_int64(record->timeout_ms));
	json_object_object_add(take, "stdin_open", json_object_new_boolean(record->stdin_open));
	json_object_object_add(take, "base64", json_object_new_boolean(base64));
	return take;
}

static void
taking_free(struct job_taking *taking)
{
	if (taking->look != NULL)
		sandbox_look_cancel(taking->look);
	job_far_forget(taking->service, taking);
	service_forget(taking->service, taking);
	LIST_REMOVE(taking, link);
	json_object_put(taking->spec);
	free(taking->jobs);
	free(taking);
}

static bool
is_own(const struct job_taking *taking)
{
	return strcmp(taking->server, taking->service->share->replica) == 0;
}

static void
taking_end(struct job_taking *taking, bool all)
{
	service_taken_f *done = taking->done;
	void *arg = taking->arg;
	char server[ID_UUID_SIZE];

	memcpy(server, taking->server, sizeof server);
	if (taking->taken > 0 && is_own(taking))
		log_info("took up a job of this server that none of its processes knew");
	else if (taking->taken > 0)
		log_info("took over %u jobs of server %s, which is gone", taking->taken, server);
	taking_free(taking);
	if (all && done != NULL)
		done(server, arg);
}

/* --- one job --- */

static void
taking_next(struct job_taking *taking)
{
	json_object_put(STEAL_PTR(taking->spec));
	taking->at++;
	taking_step(taking);
}

static void
taking_skip(struct job_taking *taking)
{
	taking->left++;
	taking_next(taking);
}

/* Its owner is nobody who lives, so whoever of this server's recovers first drives it. */
static void
taking_on_spec(const struct record_location *place, const struct err *why, void *arg)
{
	struct job_taking *taking = arg;
	struct job_record *record = &taking->jobs[taking->at];
	struct err err;
	uint32_t slot;

	if (why == NULL)
		record->spec = *place;
	if (job_table_insert(service_jobs(taking->service), record, &slot, &err) != 0) {
		log_write(LOG_LEVEL_ERROR, &(struct log_ctx){ .job_id = record->id },
			"a job of a server that is gone can't be taken over: %s", err.msg);
		taking_skip(taking);
		return;
	}
	taking->taken++;
	exec_resume(taking->service, slot);
	taking_next(taking);
}

static const char *
word_of(struct json_object *object, const char *name)
{
	const char *word = json_object_get_string(json_object_object_get(object, name));

	return word != NULL ? word : "";
}

static double
number_of(struct json_object *object, const char *name)
{
	return json_object_get_double(json_object_object_get(object, name));
}

/* The boot clock of another host says nothing here. */
static int64_t
boot_ms_of(double at)
{
	int64_t now_ms = clock_boot_ms(), age_ms = (int64_t)((clock_wall() - at) * 1000);

	return age_ms > 0 && age_ms < now_ms ? now_ms - age_ms : now_ms;
}

static void
record_fill(struct job_record *record, struct json_object *live, struct json_object *take)
{
	snprintf(record->lane, sizeof record->lane, "%s", word_of(live, "lane"));
	/* It may have been sent although nobody said so any more: only its agent knows. */
	record->state = JOB_RUNNING;
	record->taken = true;
	record->stdin_open = json_object_get_boolean(json_object_object_get(take, "stdin_open"));
	record->timeout_ms = json_object_get_int64(json_object_object_get(take, "timeout_ms"));
	record->lane_fence = (uint64_t)json_object_get_int64(json_object_object_get(live, "fence"));
	record->attempt = (uint32_t)json_object_get_int64(json_object_object_get(live, "attempt"));
	record->created_at = number_of(live, "created_at");
	record->created_ms = boot_ms_of(record->created_at);
	record->started_at = number_of(live, "started_at");
	record->started_ms = record->started_at > 0 ? boot_ms_of(record->started_at) : clock_boot_ms();
}

static struct json_object *
parse(const struct redis_answer *text)
{
	struct json_object *value = NULL;
	struct err err;

	if (text->kind == REDIS_STRING)
		value = json_parse(text->text, text->size, &err);
	return value != NULL ? value : json_object_new_object();
}

static struct json_object *
spec_of(struct json_object *live, struct json_object *take)
{
	struct json_object *spec = json_object_new_object(), *request = json_object_new_object();

	json_object_object_add(request, "command", json_object_get(json_object_object_get(live, "command")));
	json_object_object_add(spec, "request", request);
	json_object_object_add(spec, "base64", json_object_get(json_object_object_get(take, "base64")));
	return spec;
}

static void
taking_on_claimed(const struct redis_answer *rows, const struct err *why, void *arg)
{
	struct job_taking *taking = arg;
	struct job_record *record = &taking->jobs[taking->at];
	AUTO_JSON struct json_object *take = NULL, *live = NULL;

	if (why != NULL) {
		taking_end(taking, false);
		return;
	}
	if (rows->kind != REDIS_ARRAY) {
		taking_skip(taking);
		return;
	}
	take = parse(redis_answer_item(rows, 1));
	live = parse(redis_answer_item(rows, 2));
	record_fill(record, live, take);
	record->cancel = redis_answer_is(redis_answer_item(rows, 0), "1");
	taking->spec = spec_of(live, take);
	job_store_put_spec(taking->service->store, record->id, taking->spec, taking_on_spec, taking);
}

/* host_ms: 0 if its agent can be asked. */
static void
taking_claim(struct job_taking *taking, int64_t host_ms)
{
	const struct config *config = taking->service->config;
	struct board_claim claim = {
		.id = taking->jobs[taking->at].id,
		.server = taking->server,
		.gone_ms = config->redis_replica_seconds * 1000,
		.host_ms = host_ms,
	};
	struct err err;

	if (job_board_claim(taking->service->board, &claim, taking_on_claimed, taking, &err) != 0)
		taking_end(taking, false);
}

/* Where its sandbox is decides who may claim it; one that nobody knows any more is anybody's to end. */
static void
taking_judge(struct job_taking *taking)
{
	struct job_record *record = &taking->jobs[taking->at];
	struct sandbox_record sandbox;
	bool there = sandbox_table_find(service_sandboxes(taking->service), record->sandbox_id, &sandbox,
			     &record->sandbox_slot) &&
		strcmp(sandbox.uid, record->sandbox_uid) == 0;
	struct err err;

	if (!there || is_own(taking) || sandbox_check_host(&sandbox, &err) == 0)
		taking_claim(taking, 0);
	else if (taking->last_word)
		taking_claim(taking, taking->service->config->redis_host_seconds * 1000);
	else
		taking_skip(taking);
}

static void
taking_on_looked(const struct err *why, void *arg)
{
	struct job_taking *taking = arg;

	taking->look = NULL;
	if (why == NULL)
		taking_judge(taking);
	else if (why->code == ERR_UNAVAILABLE)
		taking_end(taking, false);
	else
		taking_skip(taking);
}

static void
taking_step(struct job_taking *taking)
{
	struct job_record *record = &taking->jobs[taking->at], known;
	struct err err;
	uint32_t slot;

	if (taking->at == taking->count) {
		taking_page(taking);
		return;
	}
	if (job_table_find(service_jobs(taking->service), record->id, &known, &slot))
		taking_skip(taking);
	else if (!sandbox_must_look(taking->service, record->tenant, record->sandbox_id))
		taking_judge(taking);
	else if (sandbox_look_start(taking->service, record->tenant, record->sandbox_id, taking_on_looked, taking,
			 &taking->look, &err) != 0)
		taking_end(taking, false);
}

/* --- one server --- */

/* Whoever writes into that Redis may say anything. */
static bool
record_name(struct job_record *record, const struct board_answer *answer, const char *job_id)
{
	*record = (struct job_record){ 0 };
	return id_is_uuid(job_id) && id_is_uuid(answer->sandbox_uid) &&
		text_copy(record->id, sizeof record->id, job_id) &&
		text_copy(record->sandbox_uid, sizeof record->sandbox_uid, answer->sandbox_uid) &&
		text_copy(record->tenant, sizeof record->tenant, answer->tenant) &&
		text_copy(record->sandbox_id, sizeof record->sandbox_id, answer->sandbox_id);
}

static bool
read_row(struct job_record *record, const struct redis_answer *rows, size_t at)
{
	const struct redis_answer *words[BOARD_PAGE_WORDS];

	for (int i = 0; i < BOARD_PAGE_WORDS; i++) {
		words[i] = redis_answer_item(rows, at + (size_t)i);
		if (words[i]->kind != REDIS_STRING)
			return false;
	}
	return record_name(record,
		&(struct board_answer){
			.tenant = words[BOARD_PAGE_TENANT]->text,
			.sandbox_id = words[BOARD_PAGE_SANDBOX]->text,
			.sandbox_uid = words[BOARD_PAGE_UID]->text,
		},
		words[BOARD_PAGE_ID]->text);
}

static void
taking_on_page(const struct redis_answer *rows, const struct err *why, void *arg)
{
	struct job_taking *taking = arg;
	const struct redis_answer *cursor = redis_answer_item(rows, 0);

	if (why != NULL || cursor->kind != REDIS_STRING ||
		!text_copy(taking->cursor, sizeof taking->cursor, cursor->text)) {
		taking_end(taking, false);
		return;
	}
	free(taking->jobs);
	taking->jobs = alloc_zero(rows->size / BOARD_PAGE_WORDS + 1, sizeof *taking->jobs);
	taking->count = taking->at = 0;
	for (size_t i = 1; i + BOARD_PAGE_WORDS <= rows->size; i += BOARD_PAGE_WORDS)
		if (read_row(&taking->jobs[taking->count], rows, i))
			taking->count++;
		else
			taking->left++;
	taking_step(taking);
}

static void
taking_page(struct job_taking *taking)
{
	struct err err;

	if (strcmp(taking->cursor, "0") == 0)
		taking_end(taking, taking->left == 0);
	else if (job_board_page(taking->service->board, taking->server,
			 taking->cursor[0] != '\0' ? taking->cursor : "0", taking_on_page, taking, &err) != 0)
		taking_end(taking, false);
}

static struct job_taking *
taking_new(struct service *service, const char *server)
{
	struct job_taking *taking = alloc_zero(1, sizeof *taking);

	taking->service = service;
	snprintf(taking->server, sizeof taking->server, "%s", server);
	LIST_INSERT_HEAD(&service->takings, taking, link);
	return taking;
}

void
service_take_over(struct service *service, const char *server, bool last_word, service_taken_f *done, void *arg)
{
	struct job_taking *taking;

	if (service->board == NULL || !id_is_uuid(server))
		return;
	LIST_FOREACH(taking, &service->takings, link)
	if (strcmp(taking->server, server) == 0)
		return;
	taking = taking_new(service, server);
	taking->last_word = last_word;
	taking->done = done;
	taking->arg = arg;
	taking_page(taking);
}

bool
job_is_taken(const struct service *service, const char *job_id)
{
	const struct job_taking *taking;

	LIST_FOREACH(taking, &service->takings, link)
	if (taking->at < taking->count && strcmp(taking->jobs[taking->at].id, job_id) == 0)
		return true;
	return false;
}

void
job_take_up(struct service *service, const char *job_id, const struct board_answer *answer)
{
	struct job_taking *taking = taking_new(service, service->share->replica);
	struct job_record *record = alloc_zero(1, sizeof *record);

	snprintf(taking->cursor, sizeof taking->cursor, "0");
	taking->jobs = record;
	taking->count = 1;
	if (record_name(record, answer, job_id))
		taking_step(taking);
	else
		taking_end(taking, false);
}

void
job_taking_end_all(struct service *service)
{
	while (!LIST_EMPTY(&service->takings))
		taking_free(LIST_FIRST(&service->takings));
}
