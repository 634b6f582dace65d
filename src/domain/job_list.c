/*
 * job_list.c - the jobs of one sandbox: live ones from the table, ended ones along their chain.
 *
 * The sandbox names the job that ended last, and each stored job the one that
 * ended before it. The chain stops where a job's time is over.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/job.h"
#include "domain/job_priv.h"
#include "domain/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each ended job is read from the disk: more than this would hold up everybody else. */
enum { LIST_MAX = 100 };

struct job_lister {
	struct service *service;
	char tenant[SANDBOX_TENANT_SIZE];
	struct json_object *list; /* owned */
	uint32_t limit;
	bool in_step, again; /* the store may call back at once: go on in a loop, not deeper */
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
lister_end(struct job_lister *lister)
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

static void
lister_on_result(struct json_object *value, const struct err *why, void *arg)
{
	struct job_lister *lister = arg;
	char prev[ID_UUID_SIZE];

	(void)why;
	lister->next[0] = '\0';
	if (value != NULL && job_unseal(value, lister->tenant, prev)) {
		json_object_array_add(lister->list, job_without_outputs(value));
		memcpy(lister->next, prev, sizeof lister->next);
	}
	lister_go_on(lister);
}

/* One that is just being saved stands in the list already; the chain goes on behind it. */
static void
lister_skip_live(struct job_lister *lister)
{
	struct job_record record;
	uint32_t slot;

	while (lister->next[0] != '\0' &&
		job_find_live(lister->service, lister->tenant, lister->next, &record, &slot))
		memcpy(lister->next, record.prev_job, sizeof lister->next);
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

static void
live_on_spec(struct json_object *value, const struct err *why, void *arg)
{
	struct json_object *job = arg, *request = NULL, *command = NULL;

	(void)why;
	if (value != NULL && json_object_object_get_ex(value, "request", &request) &&
		json_object_object_get_ex(request, "command", &command))
		json_object_object_add(job, "command", json_object_get(command));
}

static void
lister_add_live(struct job_lister *lister, const char *sandbox_uid)
{
	uint32_t bound = job_table_bound(service_jobs(lister->service));
	struct job_record record;

	for (uint32_t slot = 0; slot < bound; slot++) {
		AUTO_JSON struct json_object *job = NULL;

		if (!job_table_read(service_jobs(lister->service), slot, &record) ||
			strcmp(record.sandbox_uid, sandbox_uid) != 0 || strcmp(record.tenant, lister->tenant) != 0)
			continue;
		job = job_live_json(&record, NULL, job_queue_position(lister->service, &record));
		job_store_get_spec(lister->service->store, record.id, &record.spec, live_on_spec, job);
		json_object_array_add(lister->list, job_without_outputs(job));
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
	memcpy(lister->next, sandbox.last_job, sizeof lister->next);
	lister_add_live(lister, sandbox.uid);
	lister_go_on(lister);
}
