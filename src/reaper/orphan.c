/*
 * orphan.c - removing what nobody has a record of, a few at a time.
 *
 * Whoever finds orphans in a list has judged them by this server's table. Where every server reaches all sandboxes, one that
 * is not in this table may be another's: then only the elected server goes on, and asks Redis, which has the record before the
 * sandbox is begun. Without an answer it stays.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper_priv.h"
#include "backend/driver.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/sandbox_share.h"
#include "conf/config.h"
#include "domain/service.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { AT_ONCE = 64 };

struct orphan {
	TAILQ_ENTRY(orphan) link;
	struct orphans *orphans;
	char id[SANDBOX_ID_SIZE];
	char uid[ID_UUID_SIZE];
};
TAILQ_HEAD(orphan_list, orphan);

struct orphans {
	struct orphans_options options;
	struct orphan_list waiting, going; /* going: Redis, and then the driver, is asked */
	uint32_t under_way;
	bool removing; /* the list of waiting ones is complete */
};

static void next(struct orphans *orphans);

static bool
has_record(const struct orphans *orphans, const char *id, const char *uid, struct sandbox_record *ret_record)
{
	struct shm_sandboxes *table = shm_sandboxes(service_shm(orphans->options.service));

	return sandbox_table_find(table, id, ret_record, NULL) && strcmp(ret_record->uid, uid) == 0;
}

bool
orphans_is_wanted(const struct orphans *orphans, const char *id, const char *uid)
{
	struct sandbox_record record;

	return has_record(orphans, id, uid, &record) &&
		(record.status != SANDBOX_FAILED || sandbox_is_foreign(&record));
}

/* Sandboxes of others are seen here, too. */
static bool
is_common(const struct orphans *orphans)
{
	return orphans->options.membership != NULL &&
		config_is_kubernetes(service_config(orphans->options.service));
}

static void
end(struct orphan *orphan)
{
	struct orphans *orphans = orphan->orphans;

	TAILQ_REMOVE(&orphans->going, orphan, link);
	free(orphan);
	orphans->under_way--;
	next(orphans);
}

static void
on_destroyed(const struct err *why, void *arg)
{
	struct orphan *orphan = arg;

	if (why != NULL)
		log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = orphan->id },
			"an orphaned sandbox cannot be removed yet: %s", why->msg);
	else
		service_count(orphan->orphans->options.service, METRIC_REAPED_ORPHAN, 1);
	end(orphan);
}

static void
destroy(struct orphan *orphan)
{
	struct driver *driver = service_driver(orphan->orphans->options.service);
	struct sandbox_record record;

	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = orphan->id },
		"%s: removed by the rule \"orphan\"",
		has_record(orphan->orphans, orphan->id, orphan->uid, &record)
			? "something is left of this failed sandbox"
			: "no record of this sandbox");
	driver->ops->destroy(driver, orphan->id, orphan->uid, on_destroyed, orphan);
}

static void
on_asked(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct orphan *orphan = arg;
	const struct orphans *orphans = orphan->orphans;

	if (why == NULL && answer->result == SHARE_NONE && membership_is_elected(orphans->options.membership) &&
		!orphans_is_wanted(orphans, orphan->id, orphan->uid))
		destroy(orphan);
	else
		end(orphan);
}

static void
ask(struct orphan *orphan)
{
	const struct orphans_options *options = &orphan->orphans->options;
	int64_t silent_ms = service_config(options->service)->redis_replica_seconds * 1000;
	struct err err;

	if (!membership_is_elected(options->membership) ||
		sandbox_share_orphan(service_sandbox_share(options->service), orphan->id, orphan->uid, silent_ms,
			(struct share_to){ .fn = on_asked, .arg = orphan }, &err) != 0)
		end(orphan);
}

static void
begin(struct orphan *orphan)
{
	struct orphans *orphans = orphan->orphans;
	struct sandbox_record record;

	TAILQ_REMOVE(&orphans->waiting, orphan, link);
	TAILQ_INSERT_TAIL(&orphans->going, orphan, link);
	orphans->under_way++;
	if (is_common(orphans) && !has_record(orphans, orphan->id, orphan->uid, &record))
		ask(orphan);
	else
		destroy(orphan);
}

/* One that ends at once comes here again: the outermost goes on. */
static void
next(struct orphans *orphans)
{
	if (!orphans->removing)
		return;
	orphans->removing = false;
	while (!TAILQ_EMPTY(&orphans->waiting) && orphans->under_way < AT_ONCE)
		begin(TAILQ_FIRST(&orphans->waiting));
	orphans->removing = orphans->under_way > 0;
	if (!orphans->removing)
		orphans->options.done(orphans->options.arg);
}

void
orphans_add(struct orphans *orphans, const char *id, const char *uid)
{
	struct orphan *orphan = alloc_zero(1, sizeof *orphan);

	orphan->orphans = orphans;
	snprintf(orphan->id, sizeof orphan->id, "%s", id);
	snprintf(orphan->uid, sizeof orphan->uid, "%s", uid);
	TAILQ_INSERT_TAIL(&orphans->waiting, orphan, link);
}

void
orphans_remove(struct orphans *orphans)
{
	orphans->removing = true;
	next(orphans);
}

struct orphans *
orphans_create(const struct orphans_options *options)
{
	struct orphans *orphans = alloc_zero(1, sizeof *orphans);

	orphans->options = *options;
	TAILQ_INIT(&orphans->waiting);
	TAILQ_INIT(&orphans->going);
	return orphans;
}

static void
free_list(struct orphan_list *list)
{
	struct orphan *orphan;

	while ((orphan = TAILQ_FIRST(list)) != NULL) {
		TAILQ_REMOVE(list, orphan, link);
		free(orphan);
	}
}

void
orphans_free(struct orphans *orphans)
{
	free_list(&orphans->waiting);
	free_list(&orphans->going);
	free(orphans);
}
