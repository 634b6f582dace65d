/* replicas.c - see replicas.h. */
/* SPDX-License-Identifier: MIT */
#include "replicas.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "ipc/section.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

enum { LIMIT_MS = 60000, TICK_MS = 50 };

static void
on_news(void *ctx, enum mirror_outcome what, const struct mirror_place *place)
{
	struct replica *replica = ctx;
	struct err err;

	replica->news[what]++;
	if (what == MIRROR_MADE && replica->lose_on_made)
		rig_server_kill(&replica->all->server);
	if (what == MIRROR_MADE && replica->finish_on_made &&
		sandbox_share_finish(replica->share, &place->record, (struct share_to){ 0 }, &err) != 0)
		fail_msg("%s", err.msg);
}

static void
on_unwanted(void *ctx, uint32_t slot, const struct sandbox_record *record)
{
	struct replica *replica = ctx;

	(void)slot;
	(void)record;
	replica->unwanted++;
}

static bool
is_busy(void *ctx, uint32_t slot, const struct sandbox_record *record)
{
	(void)ctx;
	(void)slot;
	(void)record;
	return false;
}

static void
on_signed(void *ctx, uint32_t slot, const struct sandbox_record *sign)
{
	struct replica *replica = ctx;

	sandbox_teller_heard(replica->teller, slot, sign);
}

static void
on_heard(void *ctx, const char *kind, const struct redis_answer *fields)
{
	struct replica *replica = ctx;

	if (strcmp(kind, "sandbox") == 0)
		sandbox_feed_heard(replica->feed, fields);
}

static void
on_resumed(void *ctx, bool missed)
{
	struct replica *replica = ctx;

	sandbox_teller_all(replica->teller, changes_epoch(replica->changes));
	if (missed)
		sandbox_feed_compare(replica->feed);
}

static void
on_redis(void *ctx, bool up)
{
	struct replica *replica = ctx;

	sandbox_share_on_redis(replica->share, up);
}

static void
turn(struct replicas *all)
{
	struct timeval limit = clock_tv(TICK_MS);

	event_base_loopexit(all->base, &limit);
	event_base_loop(all->base, EVLOOP_ONCE);
	sandbox_teller_tick(all->a.teller);
	sandbox_teller_tick(all->b.teller);
}

static void
make_share(struct replica *replica)
{
	replica->share = sandbox_share_new(&(struct sandbox_share_options){
		.redis = replica->redis,
		.table = replica->table,
		.scripts = { .prefix = "t:",
			.replica = replica->id,
			.host = "here",
			.record_ttl_ms = 600000,
			.tombstone_ttl_ms = 600000,
			.changes = 1000 },
		.deadline_ms = 30000,
		.news = on_news,
		.ctx = replica,
	});
	redis_on_change(replica->redis, on_redis, replica);
}

static void
replica_open(struct replicas *all, struct replica *replica)
{
	size_t size = (sandbox_table_section_size(REPLICA_SLOTS) + 4095) / 4096 * 4096;

	replica->all = all;
	id_uuid4(replica->id);
	replica->table = aligned_alloc(4096, size);
	assert_non_null(replica->table);
	memset((void *)replica->table, 0, size);
	sandbox_table_section_init(replica->table, REPLICA_SLOTS);
	replica->redis = redis_new(all->base, &(struct redis_options){ .url = &all->url, .silence_ms = 60000 });
	replica->listens = redis_new(all->base, &(struct redis_options){ .url = &all->url, .silence_ms = 60000 });
	make_share(replica);
	replica->feed = sandbox_feed_new(&(struct sandbox_feed_options){ .base = all->base,
		.redis = replica->redis,
		.share = replica->share,
		.prefix = "t:",
		.deadline_ms = 30000,
		.signed_elsewhere = on_signed,
		.ctx = replica });
	replica->teller = sandbox_teller_new(&(struct sandbox_teller_options){ .redis = replica->redis,
		.share = replica->share,
		.prefix = "t:",
		.deadline_ms = 30000,
		.unwanted = on_unwanted,
		.is_busy = is_busy,
		.ctx = replica });
	replica->changes = changes_new(&(struct changes_options){ .base = all->base,
		.redis = replica->listens,
		.prefix = "t:",
		.heard = on_heard,
		.resumed = on_resumed,
		.ctx = replica });
}

static void
replica_close(struct replica *replica)
{
	changes_free(replica->changes);
	sandbox_teller_free(replica->teller);
	sandbox_feed_free(replica->feed);
	sandbox_share_free(replica->share);
	redis_free(replica->listens);
	redis_free(replica->redis);
	free(replica->table);
}

static bool
is_settled(const struct replica *replica)
{
	return sandbox_feed_compared(replica->feed) > 0 && sandbox_teller_is_done(replica->teller) &&
		changes_epoch(replica->changes)[0] != '\0';
}

int
replicas_start(void **state)
{
	static struct replicas all;
	int64_t end = clock_boot_ms() + LIMIT_MS;
	struct err err;

	all = (struct replicas){ .base = event_base_new() };
	assert_true(rig_server_start(&all.server, NULL));
	assert_int_equal(redis_url_parse(all.server.url, &all.url, &err), 0);
	replica_open(&all, &all.a);
	replica_open(&all, &all.b);
	while (!is_settled(&all.a) || !is_settled(&all.b)) {
		assert_true(clock_boot_ms() < end);
		turn(&all);
	}
	*state = &all;
	return 0;
}

int
replicas_stop(void **state)
{
	struct replicas *all = *state;

	replica_close(&all->a);
	replica_close(&all->b);
	event_base_free(all->base);
	rig_server_stop(&all->server);
	return 0;
}

void
outcome_set(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct outcome *outcome = arg;

	outcome->ended++;
	outcome->failed = why != NULL;
	if (answer == NULL)
		return;
	outcome->result = answer->result;
	outcome->version = answer->version;
	snprintf(outcome->rule, sizeof outcome->rule, "%s", answer->rule);
}

void
outcome_await(struct replicas *all, const struct outcome *outcome)
{
	rig_until_count(all->base, &outcome->ended, 1);
}

static struct sandbox_record
new_record(const char *id)
{
	struct sandbox_record record = { .tenant = "t",
		.image = "i",
		.labels = "{}",
		.status = SANDBOX_PENDING,
		.ttl_ms = SANDBOX_TIME_DEFAULT,
		.idle_timeout_ms = SANDBOX_TIME_DEFAULT,
		.created_ms = clock_boot_ms() };

	snprintf(record.id, sizeof record.id, "%s", id);
	id_uuid4(record.uid);
	id_token(record.agent_token);
	record.activity_ms = record.ttl_from_ms = record.status_ms = record.created_ms;
	return record;
}

struct sandbox_record
replica_make(struct replica *replica, const char *id)
{
	struct sandbox_record record = new_record(id);
	struct outcome outcome = { 0 };
	uint32_t slot;
	struct err err;

	if (sandbox_share_create(replica->share, &record, NULL,
		    (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err) != 0)
		fail_msg("%s", err.msg);
	outcome_await(replica->all, &outcome);
	assert_false(outcome.failed);
	assert_int_equal(outcome.result, SHARE_DONE);
	record.version = (uint64_t)outcome.version;
	assert_int_equal(sandbox_table_insert(replica->table, &record, &slot, &err), 0);
	return record;
}

static int
change_status(struct sandbox_record *record, void *arg, struct err *err)
{
	(void)err;
	record->status = *(enum sandbox_status *)arg;
	return 0;
}

void
replica_set_status(struct replica *replica, const char *id, enum sandbox_status status)
{
	struct sandbox_record record;
	uint32_t slot;
	struct err err;

	assert_true(sandbox_table_find(replica->table, id, &record, &slot));
	assert_int_equal(sandbox_table_change(replica->table, slot, record.uid, change_status, &status, &err), 0);
	sandbox_teller_mark(replica->teller, slot);
}

struct outcome
replica_delete(struct replica *replica, const struct sandbox_record *record)
{
	struct outcome outcome = { 0 };
	struct err err;

	if (sandbox_share_delete(replica->share, record, "delete", false,
		    (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err) != 0)
		fail_msg("%s", err.msg);
	outcome_await(replica->all, &outcome);
	return outcome;
}

struct outcome
replica_finish(struct replica *replica, const struct sandbox_record *record)
{
	struct outcome outcome = { 0 };
	struct sandbox_record there;
	uint32_t slot;
	struct err err;

	if (sandbox_share_finish(
		    replica->share, record, (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err) != 0)
		fail_msg("%s", err.msg);
	outcome_await(replica->all, &outcome);
	if (sandbox_table_find(replica->table, record->id, &there, &slot))
		sandbox_table_remove(replica->table, slot, record->uid);
	return outcome;
}

struct outcome
replica_look(struct replica *replica, const char *id)
{
	struct outcome outcome = { 0 };
	struct err err;

	if (sandbox_share_look(
		    replica->share, "t", id, (struct share_to){ .fn = outcome_set, .arg = &outcome }, &err) != 0)
		fail_msg("%s", err.msg);
	outcome_await(replica->all, &outcome);
	return outcome;
}

bool
replica_find(struct replica *replica, const char *id, struct sandbox_record *ret_record)
{
	return sandbox_table_find(replica->table, id, ret_record, NULL);
}

void
replica_until_status(struct replica *replica, const char *id, enum sandbox_status status)
{
	int64_t end = clock_boot_ms() + LIMIT_MS;
	struct sandbox_record record;

	while (!replica_find(replica, id, &record) || record.status != status) {
		if (clock_boot_ms() > end)
			fail_msg("%s does not become %s", id, sandbox_status_name(status));
		turn(replica->all);
	}
}

void
replica_until_gone(struct replica *replica, const char *id)
{
	int64_t end = clock_boot_ms() + LIMIT_MS;
	struct sandbox_record record;

	while (replica_find(replica, id, &record)) {
		if (clock_boot_ms() > end)
			fail_msg("%s is still there", id);
		turn(replica->all);
	}
}
