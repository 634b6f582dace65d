/* record_batch.c - gathers what one turn of the loop puts, each record as it will stand in the file. */
/* SPDX-License-Identifier: MIT */
#include "backend/record_batch.h"
#include "backend/record_log_impl.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

enum { ALONE_BYTES = 32 << 10, BATCH_BYTES = 512 << 10, BATCH_RECORDS = 512 };

struct waiting {
	size_t at; /* of its head in bytes */
	void (*done)(const struct record_location *place, const struct err *why, void *arg);
	void *arg;
};

struct record_batch {
	struct record_log *log; /* borrowed */
	struct event *turn_end;
	uint32_t count;
	size_t len, room;
	char *bytes; /* heads and data, one behind the other */
	struct waiting *waiting;
	uint32_t waiting_room;
};

static void
batch_on_turn_end(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	record_batch_flush(arg);
}

struct record_batch *
record_batch_create(struct event_base *base, struct record_log *log)
{
	struct record_batch *batch = alloc_zero(1, sizeof *batch);

	batch->log = log;
	batch->turn_end = event_new(base, -1, 0, batch_on_turn_end, batch);
	if (batch->turn_end == NULL)
		abort();
	return batch;
}

void
record_batch_free(struct record_batch *batch)
{
	if (batch == NULL)
		return;
	event_free(batch->turn_end);
	free(batch->bytes);
	free(batch->waiting);
	free(batch);
}

static void
put_alone(struct record_batch *batch, const struct record_put *put)
{
	struct record_location place = { 0 };
	struct err err;
	int rc = record_log_append(
		batch->log, put->kind, &put->key, put->expires_at, put->data, put->len, put->indexed, &place, &err);

	put->done(&place, rc < 0 ? &err : NULL, put->arg);
}

void
record_batch_put(struct record_batch *batch, const struct record_put *put)
{
	struct record_head head = {
		.kind = (uint16_t)put->kind,
		.indexed = put->indexed,
		.key = put->key,
		.expires_at = put->expires_at,
		.written_at = clock_steady(),
		.length = (uint32_t)put->len,
	};
	size_t need = sizeof head + put->len;

	if (put->len > ALONE_BYTES || batch->len + need > BATCH_BYTES || batch->count == BATCH_RECORDS) {
		put_alone(batch, put);
		return;
	}
	if (batch->len + need > batch->room) {
		batch->room = 2 * (batch->len + need);
		batch->bytes = alloc_resize(batch->bytes, batch->room);
	}
	segment_head_seal(&head, put->data);
	memcpy(batch->bytes + batch->len, &head, sizeof head);
	if (put->len > 0)
		memcpy(batch->bytes + batch->len + sizeof head, put->data, put->len);
	if (batch->count == batch->waiting_room) {
		batch->waiting_room = batch->waiting_room * 2 + 8;
		batch->waiting = alloc_resize(batch->waiting, batch->waiting_room * sizeof *batch->waiting);
	}
	/* Behind all that this turn of the loop still has to do. */
	if (batch->count == 0)
		event_active(batch->turn_end, EV_TIMEOUT, 0);
	batch->waiting[batch->count++] = (struct waiting){ .at = batch->len, .done = put->done, .arg = put->arg };
	batch->len += need;
}

/* It was not kept with the others: by itself, so that it is known why. */
static void
tell_alone(struct record_log *log, const struct record_head *head, const char *data, const struct waiting *waiting)
{
	struct record_location place = { 0 };
	struct err err;
	int rc = record_log_append(log, (enum record_kind)head->kind, &head->key, head->expires_at, data,
		head->length, head->indexed != 0, &place, &err);

	waiting->done(&place, rc < 0 ? &err : NULL, waiting->arg);
}

static void
tell_nobody(const struct record_location *place, const struct err *why, void *arg)
{
	(void)place;
	(void)why;
	(void)arg;
}

void
record_batch_forget(struct record_batch *batch, const void *arg)
{
	for (uint32_t i = 0; i < batch->count; i++)
		if (batch->waiting[i].arg == arg)
			batch->waiting[i].done = tell_nobody;
}

/* What is put while these are told is the next round's. */
static void
batch_append(struct record_batch *batch)
{
	AUTO_FREE char *bytes = STEAL_PTR(batch->bytes);
	AUTO_FREE struct waiting *waiting = STEAL_PTR(batch->waiting);
	struct record_location first;
	uint32_t count = batch->count;
	struct err err;
	bool kept = record_log_append_group(batch->log, bytes, batch->len, &first, &err) == 0;

	batch->count = batch->waiting_room = 0;
	batch->len = batch->room = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct record_location place = first;
		struct record_head head;

		memcpy(&head, bytes + waiting[i].at, sizeof head);
		if (!kept || !segment_head_stands(&head)) {
			tell_alone(batch->log, &head, bytes + waiting[i].at + sizeof head, &waiting[i]);
			continue;
		}
		place.offset += waiting[i].at;
		place.length = head.length;
		waiting[i].done(&place, NULL, waiting[i].arg);
	}
}

bool
record_batch_flush(struct record_batch *batch)
{
	bool waited = batch->count > 0;

	while (batch->count > 0)
		batch_append(batch);
	return waited;
}
