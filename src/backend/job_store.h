/*
 * job_store.h - jobs that have ended, and what live ones were asked to do.
 *
 * Asynchronous: an answer may come before the call returns (files) or later
 * (a store over the network). Whoever asked is told exactly once, unless he has the
 * store forget him; nobody is told after job_store_flush() at the end. The first terminal state of a job wins, always.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_JOB_STORE_H
#define ORCHARD_BACKEND_JOB_STORE_H

#include "base/cleanup.h"
#include "ipc/record_index.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct event_base;
struct job_store;
struct json_object;
struct record_log;

/* result/spec is borrowed during the callback; why is NULL on success. */
typedef void job_store_put_f(const struct record_location *place, const struct err *why, void *arg);
typedef void job_store_get_f(struct json_object *value, const struct err *why, void *arg);

/* lasting: where results go that are kept for an Idempotency-Key, so that others do not stay as long; may be log. */
struct job_store *job_store_create(struct record_log *log, struct record_log *lasting);
/* From now on what is put in one turn of the loop is kept together and told at its end. */
void job_store_batch(struct job_store *store, struct event_base *base);
/* Keeps and tells what still waits for that; whoever waits for something else is told ERR_UNAVAILABLE. */
void job_store_flush(struct job_store *store);
/* Nobody who asked for something with that arg is told any more. Puts are done all the same. */
void job_store_forget(struct job_store *store, const void *arg);
/* Nothing may wait then. */
void job_store_free(struct job_store *store);

/* Keeps what the job was asked to do; place goes into its job_record. */
void job_store_put_spec(
	struct job_store *store, const char *job_id, struct json_object *spec, job_store_put_f *done, void *arg);
void job_store_get_spec(struct job_store *store, const char *job_id, const struct record_location *place,
	job_store_get_f *done, void *arg);
/* Keeps the ended job (the whole job of the REST API). ERR_EXISTS: another end was first and stands. */
struct job_life {
	double expires_at;
	bool lasting; /* for an Idempotency-Key */
};
void job_store_put_result(struct job_store *store, const char *job_id, struct json_object *job,
	const struct job_life *life, job_store_put_f *done, void *arg);
/* ERR_NOT_FOUND: never ended here, or expired; any other error says nothing of the kind. */
void job_store_get_result(struct job_store *store, const char *job_id, job_store_get_f *done, void *arg);

#endif
