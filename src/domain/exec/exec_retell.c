/*
 * exec_retell.c - results of this server, told to other servers again.
 *
 * Redis may be emptied, or be replaced by a copy that lacks what was written last. The store of this server has every
 * result; which of them Redis lacks it alone knows, so all are told, or those of the last minutes, and it takes what is new.
 * One walk at a time, a page when Redis has taken the page before: ends of now are not held up by those of once.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/id.h"
#include "cluster/job_board.h"
#include "ipc/record_index.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

/* A copy that lags behind by more than RECENT_S is one to be ashamed of. */
enum { RECENT_S = 600, PAGE = 64, PAUSE_MS = 20 };

struct exec_retell {
	struct service *service;
	struct event *timer;
	double ended_from; /* by clock_steady() */
	uint32_t next; /* place in the index */
	bool walks;
};

struct retold {
	struct service *service;
	char job_id[ID_UUID_SIZE];
};

/* The life that it ran in, if that is the one which has the id now; "" else. */
static void
find_life(struct service *service, struct json_object *result, char ret_uid[ID_UUID_SIZE])
{
	const char *id = json_object_get_string(json_object_object_get(result, "sandbox_id"));
	struct sandbox_record sandbox;

	ret_uid[0] = '\0';
	if (id != NULL && sandbox_table_find(service_sandboxes(service), id, &sandbox, NULL) &&
		sandbox.created_at <= json_object_get_double(json_object_object_get(result, "created_at")))
		memcpy(ret_uid, sandbox.uid, ID_UUID_SIZE);
}

/* What is stored under the key of something else is no result. */
static void
on_result(struct json_object *value, const struct err *why, void *arg)
{
	const struct retold *retold = arg;
	char uid[ID_UUID_SIZE];

	(void)why;
	if (value == NULL)
		return;
	find_life(retold->service, value, uid);
	exec_board_end_again(retold->service, retold->job_id, uid, value);
}

static void
tell_page(struct exec_retell *retell)
{
	struct service *service = retell->service;
	struct retold retold = { .service = service };
	struct record_key keys[PAGE];
	size_t count;

	retell->next = record_index_page(
		shm_index(service->shm), retell->next, retell->ended_from, keys, PAGE, &count);
	for (size_t i = 0; i < count; i++) {
		id_uuid_text(keys[i].bytes, retold.job_id);
		/* Answered at once. */
		job_store_get_result(service->store, retold.job_id, on_result, &retold);
	}
	retell->walks = retell->next != 0;
}

static void
on_time(int fd, short what, void *arg)
{
	struct exec_retell *retell = arg;

	(void)fd;
	(void)what;
	if (job_board_is_idle(retell->service->board))
		tell_page(retell);
	if (retell->walks)
		service_timer_set(retell->timer, PAUSE_MS);
}

void
service_tell_again(struct service *service, bool all)
{
	double from = all ? 0 : clock_steady() - RECENT_S;
	struct exec_retell *retell = service->retell;

	if (service->board == NULL)
		return;
	if (retell == NULL) {
		retell = service->retell = alloc_zero(1, sizeof *retell);
		retell->service = service;
		retell->timer = service_timer(service, on_time, retell);
	}
	/* A walk under way for more goes on with that, from the start. */
	if (!retell->walks || from < retell->ended_from)
		retell->ended_from = from;
	retell->next = 0;
	retell->walks = true;
	service_timer_set(retell->timer, 0);
}

void
exec_retell_free(struct exec_retell *retell)
{
	if (retell == NULL)
		return;
	event_free(retell->timer);
	free(retell);
}
