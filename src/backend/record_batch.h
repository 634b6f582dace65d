/*
 * record_batch.h - records that come in one turn of the loop are appended together, at its end.
 *
 * One lock and one or two writes for all of them, where each alone would cost as much. Whoever puts a record is told
 * once it stands in the file (and the index), never before: what is asked is there before the agent hears of it, what
 * came of it before the client does. A process that is killed in between had told nobody anything.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_RECORD_BATCH_H
#define ORCHARD_BACKEND_RECORD_BATCH_H

#include "backend/record_log.h"

struct event_base;
struct record_batch;

struct record_put {
	enum record_kind kind;
	struct record_key key;
	double expires_at;
	const void *data; /* copied */
	size_t len;
	bool indexed;
	/* As record_log_append() ends; why is NULL on success. Before record_batch_put() returns when the record is big. */
	void (*done)(const struct record_location *place, const struct err *why, void *arg);
	void *arg;
};

struct record_batch *record_batch_create(struct event_base *base, struct record_log *log);
/* Nothing may be waiting in it. */
void record_batch_free(struct record_batch *batch);
void record_batch_put(struct record_batch *batch, const struct record_put *put);
/* Those with that arg are kept, and nobody is told. */
void record_batch_forget(struct record_batch *batch, const void *arg);
/* Appends and tells now, until nothing waits; false: nothing did. Not from inside a done. */
bool record_batch_flush(struct record_batch *batch);

#endif
