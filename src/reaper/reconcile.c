/*
 * reconcile.c - the table against what the driver really has, in both directions.
 *
 * A record is written before its sandbox is made, so something without a record
 * is an orphan; still, nothing is concluded from one look: it must be seen twice,
 * some seconds apart, and only complete lists count. The same holds for a record
 * whose sandbox is missing. One that the driver says has ended is lost at once.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "backend/driver.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "domain/sandbox.h"
#include "domain/service.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { RECHECK_MS = 5000 };

/* A life of a sandbox id. */
struct life {
	char uid[ID_UUID_SIZE];
	char id[SANDBOX_ID_SIZE];
	uint32_t slot; /* of its record */
	bool alive;
};

struct life_list {
	struct life *items;
	size_t count, room;
};

struct reconcile {
	struct service *service;
	struct event *timer;
	struct life_list present; /* of the list that is being read */
	struct life_list orphans, missing; /* suspects of the last complete list */
};

static int
life_compare(const void *a, const void *b)
{
	return strcmp(((const struct life *)a)->uid, ((const struct life *)b)->uid);
}

static void
life_add(struct life_list *list, const struct life *life)
{
	if (list->count == list->room) {
		list->room = list->room * 2 + 64;
		list->items = reallocarray(list->items, list->room, sizeof *list->items);
		if (list->items == NULL)
			abort();
	}
	list->items[list->count++] = *life;
}

static void
life_clear(struct life_list *list)
{
	free(list->items);
	*list = (struct life_list){ 0 };
}

/* Only in a sorted list. */
static const struct life *
life_find(const struct life_list *list, const char *uid)
{
	struct life key = { 0 };

	if (list->count == 0)
		return NULL;
	snprintf(key.uid, sizeof key.uid, "%s", uid);
	return bsearch(&key, list->items, list->count, sizeof *list->items, life_compare);
}

static void
life_sort(struct life_list *list)
{
	if (list->count > 0)
		qsort(list->items, list->count, sizeof *list->items, life_compare);
}

/* --- something that should not be there --- */

static void
on_destroyed(const struct err *why, void *arg)
{
	(void)arg;
	if (why != NULL)
		log_warn("an orphaned sandbox cannot be removed yet: %s", why->msg);
}

static bool
is_wanted(struct service *service, const struct life *life)
{
	struct sandbox_record record;

	return sandbox_table_find(shm_sandboxes(service_shm(service)), life->id, &record, NULL) &&
		strcmp(record.uid, life->uid) == 0 && record.status != SANDBOX_FAILED;
}

static void
check_orphans(struct reconcile *reconcile)
{
	struct driver *driver = service_driver(reconcile->service);
	struct life_list suspects = { 0 };

	for (size_t i = 0; i < reconcile->present.count; i++) {
		const struct life *life = &reconcile->present.items[i];

		if (is_wanted(reconcile->service, life))
			continue;
		life_add(&suspects, life);
		if (life_find(&reconcile->orphans, life->uid) == NULL)
			continue;
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = life->id },
			"no record of this sandbox: removed");
		driver->ops->destroy(driver, life->id, life->uid, on_destroyed, NULL);
	}
	life_clear(&reconcile->orphans);
	reconcile->orphans = suspects;
	life_sort(&reconcile->orphans);
}

/* --- something that should be there --- */

static bool
must_exist(const struct sandbox_record *record)
{
	return record->status == SANDBOX_READY || record->status == SANDBOX_PAUSED ||
		(record->status == SANDBOX_PENDING && record->pid > 0);
}

static void
check_missing(struct reconcile *reconcile)
{
	struct shm_sandboxes *table = shm_sandboxes(service_shm(reconcile->service));
	struct life_list suspects = { 0 };
	struct sandbox_record record;

	for (uint32_t slot = 0; slot < sandbox_table_bound(table); slot++) {
		const struct life *there;
		struct life life = { .slot = slot };

		if (!sandbox_table_read(table, slot, &record) || !must_exist(&record))
			continue;
		there = life_find(&reconcile->present, record.uid);
		if (there != NULL && there->alive)
			continue;
		if (there != NULL || life_find(&reconcile->missing, record.uid) != NULL) {
			sandbox_lost(reconcile->service, slot, record.uid,
				there != NULL ? "its agent has ended" : "the sandbox does not exist any more");
			continue;
		}
		memcpy(life.uid, record.uid, sizeof life.uid);
		memcpy(life.id, record.id, sizeof life.id);
		life_add(&suspects, &life);
	}
	life_clear(&reconcile->missing);
	reconcile->missing = suspects;
	life_sort(&reconcile->missing);
}

/* --- the list --- */

static void
on_item(const struct driver_item *item, void *arg)
{
	struct reconcile *reconcile = arg;
	struct life life = { .alive = item->alive };

	snprintf(life.id, sizeof life.id, "%s", item->id);
	snprintf(life.uid, sizeof life.uid, "%s", item->uid);
	life_add(&reconcile->present, &life);
}

static void
on_list_end(const struct err *why, void *arg)
{
	struct reconcile *reconcile = arg;
	int64_t pause_ms = service_config(reconcile->service)->cleanup_interval_seconds * 1000;

	if (why != NULL) {
		log_warn("what sandboxes there are cannot be listed, nothing is concluded: %s", why->msg);
		pause_ms = pause_ms < RECHECK_MS ? pause_ms : RECHECK_MS;
	} else {
		life_sort(&reconcile->present);
		check_orphans(reconcile);
		check_missing(reconcile);
		if (reconcile->orphans.count + reconcile->missing.count > 0 && pause_ms > RECHECK_MS)
			pause_ms = RECHECK_MS;
	}
	life_clear(&reconcile->present);
	event_add(reconcile->timer,
		&(struct timeval){ .tv_sec = pause_ms / 1000, .tv_usec = pause_ms % 1000 * 1000 });
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	struct reconcile *reconcile = arg;
	struct driver *driver = service_driver(reconcile->service);

	(void)fd;
	(void)what;
	driver->ops->list(driver, on_item, on_list_end, reconcile);
}

/* --- told by the driver --- */

static void
gone_words(const struct driver_item *item, char *ret_text, size_t size)
{
	if (item->oom_killed)
		snprintf(ret_text, size, "out of memory: the sandbox's memory limit ended its agent");
	else if (item->wait_status >= 0 && WIFSIGNALED(item->wait_status))
		snprintf(ret_text, size, "its agent was killed by signal %d", WTERMSIG(item->wait_status));
	else if (item->wait_status >= 0 && WIFEXITED(item->wait_status))
		snprintf(ret_text, size, "its agent exited with status %d", WEXITSTATUS(item->wait_status));
	else
		snprintf(ret_text, size, "its agent has ended");
}

static void
on_gone(const struct driver_item *item, void *arg)
{
	struct reconcile *reconcile = arg;
	struct sandbox_record record;
	char words[128];
	uint32_t slot;

	if (!sandbox_table_find(shm_sandboxes(service_shm(reconcile->service)), item->id, &record, &slot) ||
		strcmp(record.uid, item->uid) != 0)
		return;
	gone_words(item, words, sizeof words);
	sandbox_lost(reconcile->service, slot, record.uid, words);
}

struct reconcile *
reconcile_create(struct event_base *base, struct service *service)
{
	struct reconcile *reconcile = calloc(1, sizeof *reconcile);
	struct driver *driver = service_driver(service);

	if (reconcile == NULL)
		abort();
	reconcile->service = service;
	reconcile->timer = event_new(base, -1, 0, on_time, reconcile);
	if (reconcile->timer == NULL)
		abort();
	driver->ops->watch(driver, on_gone, reconcile);
	event_active(reconcile->timer, EV_TIMEOUT, 1);
	return reconcile;
}

void
reconcile_free(struct reconcile *reconcile)
{
	if (reconcile == NULL)
		return;
	event_free(reconcile->timer);
	life_clear(&reconcile->present);
	life_clear(&reconcile->orphans);
	life_clear(&reconcile->missing);
	free(reconcile);
}
