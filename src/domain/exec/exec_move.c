/*
 * exec_move.c - the descriptions of commands that live for long do not hold the record log back.
 *
 * No segment from the oldest that a live job's description stands in goes, whatever the
 * budget says: one that lives for a day would keep a day's results. So what is old
 * and far behind is written anew. The old one stays until the sweep after that:
 * who has just read where it stands still finds it.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "ipc/job_table.h"
#include "ipc/record_index.h"
#include "ipc/shm.h"

#include <json-c/json.h>

enum { OLD_MS = 10 * 60 * 1000, FAR_SEGMENTS = 16, MOVES = 1000 };

struct move {
	struct service *service;
	uint32_t slot;
	struct job_record record;
	struct record_location place; /* the new one */
};

static int
change_spec(struct job_record *record, void *arg, struct err *err)
{
	const struct move *move = arg;

	(void)err;
	record->spec = move->place;
	return 0;
}

static void
move_on_put(const struct record_location *place, const struct err *why, void *arg)
{
	AUTO_FREE struct move *move = arg;
	struct err err;

	if (why != NULL) {
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .job_id = move->record.id },
			"its description could not be moved: %s", why->msg);
		return;
	}
	move->place = *place;
	/* One that has just ended needs none. */
	(void)!job_table_change(service_jobs(move->service), move->slot, move->record.id, change_spec, move, &err);
}

static void
move_on_spec(struct json_object *value, const struct err *why, void *arg)
{
	struct move *move = arg;

	if (value != NULL)
		job_store_put_spec(move->service->store, move->record.id, value, move_on_put, move);
	else
		move_on_put(NULL, why, move);
}

void
exec_move_specs(struct service *service)
{
	struct shm_jobs *jobs = service_jobs(service);
	uint32_t bound = job_table_count(jobs) > 0 ? job_table_bound(jobs) : 0, moves = 0;
	uint32_t newest = record_index_newest_segment(shm_index(service->shm));
	int64_t now_ms = clock_boot_ms();
	struct job_record record;

	for (uint32_t slot = 0; slot < bound && moves < MOVES; slot++) {
		struct move *move;

		if (!job_table_read(jobs, slot, &record) || record.spec.segment == 0 ||
			now_ms - record.created_ms < OLD_MS || newest - record.spec.segment < FAR_SEGMENTS)
			continue;
		move = alloc_zero(1, sizeof *move);
		move->service = service;
		move->slot = slot;
		move->record = record;
		moves++;
		job_store_get_spec(service->store, record.id, &record.spec, move_on_spec, move);
	}
}
