/* job_store.c - jobs as JSON in the record log. */
/* SPDX-License-Identifier: MIT */
#include "backend/job_store.h"
#include "backend/record_batch.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>

/* Of a description whose job came to nothing. While a job lives, the sweeper is told to keep it. */
enum { SPEC_LIFE_S = 3600 };

struct job_store {
	struct record_log *log, *lasting; /* borrowed; both have the same index */
	struct record_batch *batch, *lasting_batch; /* NULL: each record by itself, at once */
};

struct job_store *
job_store_create(struct record_log *log, struct record_log *lasting)
{
	struct job_store *store = alloc_zero(1, sizeof *store);

	store->log = log;
	store->lasting = lasting;
	return store;
}

void
job_store_batch(struct job_store *store, struct event_base *base)
{
	store->batch = record_batch_create(base, store->log);
	store->lasting_batch = record_batch_create(base, store->lasting);
}

void
job_store_flush(struct job_store *store)
{
	/* What is told may put more. */
	while (store->batch != NULL &&
		(record_batch_flush(store->batch) || record_batch_flush(store->lasting_batch)))
		;
}

void
job_store_forget(struct job_store *store, const void *arg)
{
	/* What is asked for is answered at once; only puts may wait. */
	if (store->batch != NULL) {
		record_batch_forget(store->batch, arg);
		record_batch_forget(store->lasting_batch, arg);
	}
}

void
job_store_free(struct job_store *store)
{
	record_batch_free(store->batch);
	record_batch_free(store->lasting_batch);
	free(store);
}

static void
put(struct record_log *log, struct record_batch *batch, const struct record_put *put)
{
	struct record_location place = { 0 };
	struct err err;
	int rc;

	if (batch != NULL) {
		record_batch_put(batch, put);
		return;
	}
	rc = record_log_append(
		log, put->kind, &put->key, put->expires_at, put->data, put->len, put->indexed, &place, &err);
	put->done(&place, rc < 0 ? &err : NULL, put->arg);
}

static void
answer(char *text, size_t len, int rc, const struct err *why, job_store_get_f *done, void *arg)
{
	AUTO_JSON struct json_object *value = NULL;
	struct err fault;

	if (rc < 0) {
		done(NULL, why, arg);
		return;
	}
	value = json_parse(text, len, &fault);
	free(text);
	if (value == NULL)
		fault.code = ERR_INTERNAL;
	done(value, value == NULL ? &fault : NULL, arg);
}

void
job_store_put_spec(
	struct job_store *store, const char *job_id, struct json_object *spec, job_store_put_f *done, void *arg)
{
	struct record_put record = { .kind = RECORD_JOB_SPEC,
		.key = record_key_job(job_id),
		.expires_at = clock_steady() + SPEC_LIFE_S,
		.done = done,
		.arg = arg };

	record.data = json_text(spec, &record.len);
	put(store->log, store->batch, &record);
}

void
job_store_get_spec(struct job_store *store, const char *job_id, const struct record_location *place,
	job_store_get_f *done, void *arg)
{
	struct record_key key = record_key_job(job_id);
	char *text = NULL;
	size_t len = 0;
	struct err err;
	int rc = record_log_read(store->log, RECORD_JOB_SPEC, &key, place, &text, &len, &err);

	answer(text, len, rc, &err, done, arg);
}

void
job_store_put_result(struct job_store *store, const char *job_id, struct json_object *job,
	const struct job_life *life, job_store_put_f *done, void *arg)
{
	struct record_put record = { .kind = RECORD_JOB_RESULT,
		.key = record_key_job(job_id),
		.indexed = true,
		.expires_at = life->expires_at,
		.done = done,
		.arg = arg };

	record.data = json_text(job, &record.len);
	if (life->lasting)
		put(store->lasting, store->lasting_batch, &record);
	else
		put(store->log, store->batch, &record);
}

void
job_store_get_result(struct job_store *store, const char *job_id, job_store_get_f *done, void *arg)
{
	struct record_key key = record_key_job(job_id);
	char *text = NULL;
	size_t len = 0;
	struct err err;
	int rc = record_log_find(store->log, RECORD_JOB_RESULT, &key, &text, &len, &err);

	answer(text, len, rc, &err, done, arg);
}
