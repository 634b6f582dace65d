/*
 * reconcile.c - the table against what the driver really has, in both directions.
 *
 * A record is written before its sandbox is made, so something without a record
 * is an orphan; still, nothing is concluded from one look: it must be seen twice
 * and have been there for some seconds, and only complete lists count. How long is
 * the driver's to say, so the second look at an old one comes soon, also after a death of ours. A record
 * whose sandbox is missing must be seen twice, some seconds apart. One that the driver says has ended is lost at once.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "backend/driver.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "domain/sandbox/sandbox.h"
#include "domain/service.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { RECHECK_MS = 5000, HURRY = 5 };

/* A life of a sandbox id. */
struct life {
	char uid[ID_UUID_SIZE];
	char id[SANDBOX_ID_SIZE];
	uint32_t slot; /* of its record */
	bool alive;
	int64_t known_ms; /* of one that is there */
	int64_t missed_ms; /* of one that is not: clock_boot_ms() when that was first seen */
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
	struct orphans *remover; /* of orphans of two lists */
	bool hurry; /* some suspect is old enough to go at the next look */
	struct err untold; /* why the last list failed; ERR_NONE: it did not */
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

static int64_t
recheck_ms(const struct reconcile *reconcile)
{
	int64_t interval_ms = service_config(reconcile->service)->cleanup_interval_seconds * 1000;

	return interval_ms < RECHECK_MS ? interval_ms : RECHECK_MS;
}

/* Timers are not so exact that the second look must come after all of the pause. */
static int64_t
long_enough_ms(const struct reconcile *reconcile)
{
	return recheck_ms(reconcile) * 4 / 5;
}

/* When the next list is read. */
static void
plan(struct reconcile *reconcile, bool soon)
{
	int64_t pause_ms = service_config(reconcile->service)->cleanup_interval_seconds * 1000;
	struct timeval pause;

	if (soon)
		pause_ms = recheck_ms(reconcile) / (reconcile->hurry ? HURRY : 1);
	pause = clock_tv(pause_ms);
	event_add(reconcile->timer, &pause);
}

/* --- something that should not be there --- */

/* The next list is read when all of them are gone or have failed: it then says what is left. */
static void
on_orphans_gone(void *arg)
{
	struct reconcile *reconcile = arg;

	plan(reconcile, reconcile->orphans.count + reconcile->missing.count > 0);
}

static void
check_orphans(struct reconcile *reconcile)
{
	struct life_list suspects = { 0 };

	reconcile->hurry = false;
	for (size_t i = 0; i < reconcile->present.count; i++) {
		const struct life *life = &reconcile->present.items[i];
		bool old = life->known_ms >= long_enough_ms(reconcile);

		if (orphans_is_wanted(reconcile->remover, life->id, life->uid))
			continue;
		life_add(&suspects, life);
		if (old && life_find(&reconcile->orphans, life->uid) != NULL)
			orphans_add(reconcile->remover, life->id, life->uid);
		else if (old)
			reconcile->hurry = true;
	}
	life_clear(&reconcile->orphans);
	reconcile->orphans = suspects;
	life_sort(&reconcile->orphans);
}

/* --- something that should be there --- */

static bool
must_exist(const struct sandbox_record *record)
{
	return !sandbox_is_foreign(record) &&
		(record->status == SANDBOX_READY || record->status == SANDBOX_PAUSED ||
			(sandbox_is_being_made(record) && record->pid > 0));
}

static void
check_missing(struct reconcile *reconcile)
{
	struct shm_sandboxes *table = shm_sandboxes(service_shm(reconcile->service));
	struct life_list suspects = { 0 };
	struct sandbox_record record;

	for (uint32_t slot = 0; slot < sandbox_table_bound(table); slot++) {
		const struct life *there, *before;
		struct life life = { .slot = slot, .missed_ms = clock_boot_ms() };

		if (!sandbox_table_read(table, slot, &record) || !must_exist(&record))
			continue;
		there = life_find(&reconcile->present, record.uid);
		if (there != NULL && there->alive)
			continue;
		before = life_find(&reconcile->missing, record.uid);
		if (before != NULL)
			life.missed_ms = before->missed_ms;
		if (there != NULL || clock_boot_ms() - life.missed_ms >= long_enough_ms(reconcile)) {
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
	struct life life = { .alive = item->alive, .known_ms = item->known_ms };

	snprintf(life.id, sizeof life.id, "%s", item->id);
	snprintf(life.uid, sizeof life.uid, "%s", item->uid);
	life_add(&reconcile->present, &life);
}

static void
on_list_end(const struct err *why, void *arg)
{
	struct reconcile *reconcile = arg;

	if (why != NULL) {
		if (strcmp(reconcile->untold.msg, why->msg) != 0)
			log_warn("what sandboxes there are cannot be listed, nothing is concluded: %s", why->msg);
		reconcile->untold = *why;
		life_clear(&reconcile->present);
		reconcile->hurry = false;
		plan(reconcile, true);
		return;
	}
	reconcile->untold = (struct err){ 0 };
	life_sort(&reconcile->present);
	check_orphans(reconcile);
	check_missing(reconcile);
	life_clear(&reconcile->present);
	orphans_remove(reconcile->remover);
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
	if (item->reason != NULL && item->reason[0] != '\0')
		snprintf(ret_text, size, "%s", item->reason);
	else if (item->oom_killed)
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
	char words[SANDBOX_MESSAGE_SIZE];
	uint32_t slot;

	if (!sandbox_table_find(shm_sandboxes(service_shm(reconcile->service)), item->id, &record, &slot) ||
		strcmp(record.uid, item->uid) != 0)
		return;
	if (item->alive) {
		sandbox_silent(reconcile->service, slot, record.uid, item->reason);
		return;
	}
	gone_words(item, words, sizeof words);
	sandbox_lost(reconcile->service, slot, record.uid, words);
}

struct reconcile *
reconcile_create(struct event_base *base, struct service *service, const struct membership *membership)
{
	struct reconcile *reconcile = calloc(1, sizeof *reconcile);
	struct driver *driver = service_driver(service);

	if (reconcile == NULL)
		abort();
	reconcile->service = service;
	reconcile->timer = event_new(base, -1, 0, on_time, reconcile);
	if (reconcile->timer == NULL)
		abort();
	reconcile->remover = orphans_create(&(struct orphans_options){
		.service = service,
		.membership = membership,
		.done = on_orphans_gone,
		.arg = reconcile,
	});
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
	orphans_free(reconcile->remover);
	free(reconcile);
}
