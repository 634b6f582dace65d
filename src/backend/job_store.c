/*
 * job_store.c - jobs as JSON in the record log; every answer comes before the call returns.
 */
/* SPDX-License-Identifier: MIT */
#include "backend/job_store.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>

/* Of a description whose job came to nothing. While a job lives, the sweeper is told to keep it. */
enum { SPEC_LIFE_S = 3600 };

struct job_store {
	struct record_log *log; /* borrowed */
};

struct job_store *
job_store_create(struct record_log *log)
{
	struct job_store *store = alloc_zero(1, sizeof *store);

	store->log = log;
	return store;
}

void
job_store_free(struct job_store *store)
{
	free(store);
}

static int
put(struct job_store *store, enum record_kind kind, const char *job_id, struct json_object *value,
	double expires_at, struct record_location *ret_place, struct err *err)
{
	struct record_key key = record_key_job(job_id);
	size_t len;
	const char *text = json_text(value, &len);

	return record_log_append(
		store->log, kind, &key, expires_at, text, len, kind == RECORD_JOB_RESULT, ret_place, err);
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
	struct record_location place = { 0 };
	struct err err;
	int rc = put(store, RECORD_JOB_SPEC, job_id, spec, clock_wall() + SPEC_LIFE_S, &place, &err);

	done(&place, rc < 0 ? &err : NULL, arg);
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
job_store_put_result(struct job_store *store, const char *job_id, struct json_object *job, double expires_at,
	job_store_put_f *done, void *arg)
{
	struct record_location place = { 0 };
	struct err err;
	int rc = put(store, RECORD_JOB_RESULT, job_id, job, expires_at, &place, &err);

	done(&place, rc < 0 ? &err : NULL, arg);
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
