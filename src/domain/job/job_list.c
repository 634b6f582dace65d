/*
 * job_list.c - the jobs of one sandbox: live ones from the table, ended ones along their chain.
 *
 * The sandbox names the job that ended last, and each stored job the one that
 * ended before it. The chain stops where a job's time is over. The live ones are
 * read first: one that ends meanwhile is found twice, never missed, and counts as it ended. What other servers have told
 * of theirs comes from Redis, and what this server knows itself counts more.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job.h"
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "cluster/job_board.h"
#include "redis/answer.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each ended job is read from the disk: more than this would hold up everybody else. */
enum { LIST_MAX = 100 };

struct job_lister {
	uint32_t pending; /* live ones whose descriptions are being read, and one while more may come */
	struct service *service;
	char tenant[SANDBOX_TENANT_SIZE];
	struct json_object *list; /* owned */
	uint32_t limit;
	size_t live; /* so many of the list came from the table */
	char sandbox_id[SANDBOX_ID_SIZE], sandbox_uid[ID_UUID_SIZE];
	bool in_step, again; /* the store may call back at once: go on in a loop, not deeper */
	char last[ID_UUID_SIZE], last_prev[ID_UUID_SIZE]; /* the head of the sandbox's chain */
	char next[ID_UUID_SIZE]; /* the ended job to read next */
	job_done_f *done;
	void *arg;
};

static double
job_created(struct json_object *job)
{
	return json_object_get_double(json_object_object_get(job, "created_at"));
}

static int
compare_newest(const void *a, const void *b)
{
	double left = job_created(*(struct json_object *const *)a);
	double right = job_created(*(struct json_object *const *)b);

	return left > right ? -1 : left < right;
}

static void
lister_tell(struct job_lister *lister)
{
	job_done_f *done = lister->done;
	AUTO_JSON struct json_object *list = lister->list;
	void *arg = lister->arg;
	size_t n;

	json_object_array_sort(list, compare_newest);
	n = json_object_array_length(list);
	if (n > lister->limit)
		json_object_array_del_idx(list, lister->limit, n - lister->limit);
	free(lister);
	done(list, NULL, arg);
}

static void lister_go_on(struct job_lister *lister);
static void lister_end(struct job_lister *lister);

static const char *
job_id_of(struct json_object *job)
{
	return json_object_get_string(json_object_object_get(job, "job_id"));
}

/* --- those of other servers --- */

static bool
lister_knows(const struct job_lister *lister, const char *job_id)
{
	for (size_t i = 0; i < json_object_array_length(lister->list); i++)
		if (strcmp(job_id_of(json_object_array_get_idx(lister->list, i)), job_id) == 0)
			return true;
	return false;
}

static void
lister_add_far(struct job_lister *lister, const struct redis_answer *id, const struct redis_answer *text)
{
	AUTO_JSON struct json_object *job = NULL;
	struct err err;

	if (id->kind != REDIS_STRING || text->kind != REDIS_STRING || lister_knows(lister, id->text))
		return;
	job = json_parse(text->text, text->size, &err);
	if (job == NULL || job_id_of(job) == NULL)
		return;
	/* What an older server has written is the whole result. */
	(void)!job_unseal(job, lister->tenant, NULL);
	json_object_array_add(lister->list, job_without_outputs(job));
}

static void
lister_on_far(const struct redis_answer *rows, const struct err *why, void *arg)
{
	struct job_lister *lister = arg;
	job_done_f *done = lister->done;

	if (why != NULL) {
		json_object_put(lister->list);
		arg = lister->arg;
		free(lister);
		done(NULL, why, arg);
		return;
	}
	for (size_t i = 0; i + 1 < rows->size; i += 2)
		lister_add_far(lister, redis_answer_item(rows, i), redis_answer_item(rows, i + 1));
	lister_tell(lister);
}

static void
lister_end(struct job_lister *lister)
{
	struct board_list list = {
		.sandbox_uid = lister->sandbox_uid, .tenant = lister->tenant, .limit = lister->limit
	};
	struct err err;

	if (lister->service->board == NULL)
		lister_tell(lister);
	else if (job_board_list(lister->service->board, &list, lister_on_far, lister, &err) != 0)
		lister_on_far(NULL, &err, lister);
}

/* --- the chain --- */

/* Takes job: in the place of what it was a moment ago, if that is in the list. */
static void
lister_add_ended(struct job_lister *lister, struct json_object *job)
{
	for (size_t i = 0; i < lister->live; i++) {
		if (strcmp(job_id_of(json_object_array_get_idx(lister->list, i)), job_id_of(job)) == 0) {
			json_object_array_put_idx(lister->list, i, job);
			return;
		}
	}
	json_object_array_add(lister->list, job);
}

static void
lister_on_result(struct json_object *value, const struct err *why, void *arg)
{
	struct job_lister *lister = arg;
	char prev[ID_UUID_SIZE];

	(void)why;
	lister->next[0] = '\0';
	if (value != NULL && job_unseal(value, lister->tenant, prev)) {
		lister_add_ended(lister, job_without_outputs(value));
		memcpy(lister->next, prev, sizeof lister->next);
	}
	lister_go_on(lister);
}

/*
 * One that is just being saved stands in the list already; the chain goes on behind it. Of the last one the sandbox
 * knows what it follows even before its own record does.
 */
static void
lister_skip_live(struct job_lister *lister)
{
	uint32_t slot, left = job_table_bound(service_jobs(lister->service));
	struct job_record record;

	while (lister->next[0] != '\0' && left-- > 0 &&
		job_find_live(lister->service, lister->tenant, lister->next, &record, &slot))
		memcpy(lister->next, strcmp(record.id, lister->last) == 0 ? lister->last_prev : record.prev_job,
			sizeof lister->next);
}

static void
lister_go_on(struct job_lister *lister)
{
	if (lister->in_step) {
		lister->again = true;
		return;
	}
	for (;;) {
		lister_skip_live(lister);
		if (lister->next[0] == '\0' || json_object_array_length(lister->list) >= lister->limit) {
			lister_end(lister);
			return;
		}
		lister->in_step = true;
		lister->again = false;
		job_store_get_result(lister->service->store, lister->next, lister_on_result, lister);
		lister->in_step = false;
		if (!lister->again)
			return;
	}
}

/* Those that live are there; now the ended ones. A sandbox that has gone has no chain any more. */
static void
lister_settle(struct job_lister *lister)
{
	struct sandbox_record sandbox;

	if (--lister->pending > 0)
		return;
	lister->live = json_object_array_length(lister->list);
	if (sandbox_table_find(service_sandboxes(lister->service), lister->sandbox_id, &sandbox, NULL) &&
		strcmp(sandbox.uid, lister->sandbox_uid) == 0) {
		memcpy(lister->last, sandbox.last_job, sizeof lister->last);
		memcpy(lister->last_prev, sandbox.last_prev, sizeof lister->last_prev);
		memcpy(lister->next, sandbox.last_job, sizeof lister->next);
	}
	lister_go_on(lister);
}

struct live_ask {
	struct job_lister *lister;
	struct json_object *job; /* owned */
};

static void
live_on_spec(struct json_object *value, const struct err *why, void *arg)
{
	AUTO_FREE struct live_ask *ask = arg;
	struct json_object *request = NULL, *command = NULL;

	(void)why;
	if (value != NULL && json_object_object_get_ex(value, "request", &request) &&
		json_object_object_get_ex(request, "command", &command))
		json_object_object_add(ask->job, "command", json_object_get(command));
	json_object_put(ask->job);
	lister_settle(ask->lister);
}

static void
lister_add_live(struct job_lister *lister, const char *sandbox_uid)
{
	uint32_t bound = job_table_bound(service_jobs(lister->service));
	struct job_record record;

	for (uint32_t slot = 0; slot < bound; slot++) {
		AUTO_JSON struct json_object *job = NULL;
		struct live_ask *ask;

		if (!job_table_read(service_jobs(lister->service), slot, &record) ||
			strcmp(record.sandbox_uid, sandbox_uid) != 0 || strcmp(record.tenant, lister->tenant) != 0)
			continue;
		job = job_standing_json(lister->service, &record, NULL);
		ask = alloc_zero(1, sizeof *ask);
		ask->lister = lister;
		ask->job = job_without_outputs(job);
		json_object_array_add(lister->list, json_object_get(ask->job));
		lister->pending++;
		job_store_get_spec(lister->service->store, record.id, &record.spec, live_on_spec, ask);
	}
}

void
job_list(struct service *service, const char *tenant, const char *sandbox_id, uint32_t limit, job_done_f *done,
	void *arg)
{
	struct sandbox_record sandbox;
	struct job_lister *lister;
	struct err err;

	if (sandbox_lookup(service, tenant, sandbox_id, &sandbox, NULL, &err) != 0) {
		done(NULL, &err, arg);
		return;
	}
	lister = alloc_zero(1, sizeof *lister);
	lister->service = service;
	lister->limit = limit > 0 && limit < LIST_MAX ? limit : LIST_MAX;
	lister->list = json_object_new_array();
	lister->done = done;
	lister->arg = arg;
	memcpy(lister->tenant, sandbox.tenant, sizeof lister->tenant);
	memcpy(lister->sandbox_id, sandbox.id, sizeof lister->sandbox_id);
	memcpy(lister->sandbox_uid, sandbox.uid, sizeof lister->sandbox_uid);
	lister->pending = 1;
	lister_add_live(lister, sandbox.uid);
	lister_settle(lister);
}
