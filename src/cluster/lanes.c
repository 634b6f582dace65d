/*
 * lanes.c - asks Redis about lanes, keeps what it says in the table, renews leases while commands are in them.
 *
 * A lease counts from before the question was sent, so it ends here no later than there. It is renewed while a command
 * of this process is in its lane, from half of its life on; an unused one just ends. Handing over is no matter of
 * safety: the agent refuses what comes too late. So a lost answer or message costs time, never more.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/lanes_impl.h"
#include "cluster/lane_script.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "ipc/exec_lock.h"
#include "ipc/notify.h"
#include "redis/client.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEADLINE_MS = 2000,
	LEASE_MS = 10000,
	CLAIM_MS = 2000, /* what a replica has to take a turn in */
	REMEMBER_MS = 3600 * 1000
};

static const struct redis_script script = { .text = lane_script, .keys = 3 };

bool
lanes_is_away(const struct lanes *lanes)
{
	return lanes->refused || !redis_is_up(lanes->options.redis);
}

bool
lanes_read(struct lanes *lanes, struct lane_ref *ref, struct lane_record *ret_record)
{
	return (lane_table_read(lanes->options.table, ref->slot, ret_record) &&
		       strcmp(ret_record->key, ref->key) == 0) ||
		lane_table_find(lanes->options.table, ref->key, ret_record, &ref->slot);
}

static bool
lane_is_idle(void *arg, const struct lane_record *record)
{
	struct lanes *lanes = arg;

	return exec_lock_is_idle(lanes->options.lock, record->sandbox_slot, record->lane);
}

int
lanes_enter(struct lanes *lanes, struct lane_ref *ref, struct err *err)
{
	struct lane_record record = { .lane = ref->lane, .sandbox_slot = ref->sandbox_slot };

	memcpy(record.key, ref->key, sizeof record.key);
	return lane_table_enter(lanes->options.table, &record, &lanes->forgetting, &ref->slot, err);
}

int
lanes_change(struct lanes *lanes, struct lane_ref *ref, lane_change_f *change, void *arg, struct err *err)
{
	struct shm_lanes *table = lanes->options.table;

	if (lane_table_change(table, ref->slot, ref->key, change, arg, err) == 0)
		return 0;
	if (err->code != ERR_NOT_FOUND || lanes_enter(lanes, ref, err) != 0)
		return -1;
	return lane_table_change(table, ref->slot, ref->key, change, arg, err);
}

/* --- asking --- */

static void
ask_free(struct lane_ask *ask)
{
	if (ask->pass != NULL)
		ask->pass->ask = NULL;
	LIST_REMOVE(ask, link);
	free(ask);
}

static int
change_learn(struct lane_record *record, void *arg, struct err *err)
{
	(void)err;
	lane_lease_learn(record, arg);
	return 0;
}

static bool
read_news(const struct redis_answer *answer, int64_t sent_ms, struct lane_news *ret_news)
{
	int64_t has, number, turns, wanted, left;

	if (answer->kind != REDIS_ARRAY || !redis_answer_number(redis_answer_item(answer, 0), &has) ||
		!redis_answer_number(redis_answer_item(answer, 1), &number) ||
		!redis_answer_number(redis_answer_item(answer, 2), &turns) ||
		!redis_answer_number(redis_answer_item(answer, 3), &wanted) ||
		!redis_answer_number(redis_answer_item(answer, 4), &left))
		return false;
	*ret_news = (struct lane_news){
		.has = has == 1,
		.wanted = wanted == 1,
		.number = (uint64_t)number,
		.turns = (uint32_t)turns,
		.until_ms = sent_ms + left,
	};
	return true;
}

/* Once for each time that it begins: a question a second is asked again for each command that waits. */
static void
lanes_tell_refused(struct lanes *lanes, const struct lane_ask *ask, const struct redis_answer *answer)
{
	lanes->refused_ref = ask->ref;
	if (!lanes->refused)
		log_error("Redis can't say who has a lane, commands that must know wait or are refused: %.*s",
			(int)answer->size, answer->text);
	lanes->refused = true;
}

/* Nobody waits for it here any more, but others do. */
static void
lanes_pass_on(struct lanes *lanes, struct lane_ref *ref)
{
	struct lane_record record;

	if (lanes_read(lanes, ref, &record) && record.wanted && lane_is_idle(lanes, &record))
		lanes_let_go(lanes, ref);
}

static void
ask_on_answer(void *ctx, const struct redis_answer *answer)
{
	struct lane_ask *ask = ctx;
	struct lanes *lanes = ask->lanes;
	struct lane_pass *pass = ask->pass;
	struct lane_ref ref = ask->ref;
	struct lane_news news = { 0 };
	struct err err;

	if (read_news(answer, ask->sent_ms, &news)) {
		lanes->refused = false;
		if (pass != NULL)
			(void)!lanes_change(lanes, &pass->ref, change_learn, &news, &err);
		else
			(void)!lane_table_change(
				lanes->options.table, ref.slot, ref.key, change_learn, &news, &err);
	} else if (answer->kind == REDIS_ERROR) {
		lanes_tell_refused(lanes, ask, answer);
	}
	ask_free(ask);
	if (pass != NULL)
		lane_pass_answered(pass, news.has);
	else if (news.has)
		lanes_pass_on(lanes, &ref);
}

static void
ask_put(const struct lane_ask *ask, const char *verb, const struct lane_record *record, struct redis_args *args)
{
	const struct lanes_options *options = &ask->lanes->options;

	redis_args_init(args);
	redis_args_format(args, "%slane:%s", options->prefix, ask->ref.key);
	redis_args_format(args, "%slane:%s:queue", options->prefix, ask->ref.key);
	redis_args_format(args, "%schanges", options->prefix);
	redis_args_text(args, verb);
	redis_args_text(args, options->replica);
	redis_args_number(args, (int64_t)record->number);
	redis_args_number(args, options->lease_ms);
	redis_args_number(args, CLAIM_MS);
	redis_args_number(args, (int64_t)record->over);
	redis_args_text(args, ask->ref.key);
	redis_args_number(args, REMEMBER_MS);
	redis_args_number(args, LANE_STREAM_ENTRIES);
}

bool
lanes_ask(struct lanes *lanes, const char *verb, const struct lane_ref *ref, struct lane_pass *pass)
{
	struct lane_ask *ask = alloc_zero(1, sizeof *ask);
	struct redis_reply_to to = { ask_on_answer, ask, lanes->options.deadline_ms };
	struct lane_record record = { 0 };
	struct redis_args args;
	struct err err;

	ask->lanes = lanes;
	ask->ref = *ref;
	ask->sent_ms = clock_boot_ms();
	LIST_INSERT_HEAD(&lanes->asks, ask, link);
	if (!lanes_read(lanes, &ask->ref, &record))
		record = (struct lane_record){ 0 };
	ask_put(ask, verb, &record, &args);
	if (redis_run(lanes->options.redis, &script, &args, to, &err) != 0) {
		ask_free(ask);
		return false;
	}
	ask->pass = pass;
	if (pass != NULL)
		pass->ask = ask;
	return true;
}

/* --- giving it away --- */

static int
change_drop(struct lane_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	lane_lease_drop(record);
	return 0;
}

void
lanes_let_go(struct lanes *lanes, struct lane_ref *ref)
{
	struct err err;

	if (lanes_is_away(lanes))
		return;
	/* Here first: a command that comes meanwhile asks, behind this. */
	(void)!lane_table_change(lanes->options.table, ref->slot, ref->key, change_drop, NULL, &err);
	(void)!lanes_ask(lanes, "release", ref, NULL);
}

static int
change_wanted(struct lane_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->wanted = lane_lease_is_held(record);
	return 0;
}

/* As lane_pass.c makes them. Whoever writes into that Redis may say anything. */
static bool
is_lane_key(const char *key)
{
	size_t uid = strcspn(key, ":"), rest = strnlen(key + uid, LANE_KEY_SIZE);

	return uid > 0 && uid + rest < LANE_KEY_SIZE && rest == 17 && strspn(key, "0123456789abcdef-") == uid &&
		strspn(key + uid + 1, "0123456789abcdef") == 16;
}

void
lanes_heard(struct lanes *lanes, const char *key)
{
	struct lane_ref ref = { .slot = UINT32_MAX };
	struct lane_record record;
	struct err err;

	if (!is_lane_key(key))
		return;
	snprintf(ref.key, sizeof ref.key, "%s", key);
	if (!lanes_read(lanes, &ref, &record)) {
		/* Forgotten, so nobody is in it. */
		(void)!lanes_ask(lanes, "release", &ref, NULL);
		return;
	}
	(void)!lane_table_change(lanes->options.table, ref.slot, ref.key, change_wanted, NULL, &err);
	if (lane_is_idle(lanes, &record))
		lanes_let_go(lanes, &ref);
	else
		notify_post(lanes->options.notify, NOTIFY_SANDBOX, record.sandbox_slot);
}

/* --- the process's part --- */

static void
lanes_renew(evutil_socket_t fd, short what, void *arg)
{
	struct lanes *lanes = arg;
	int64_t soon = clock_boot_ms() + lanes->options.lease_ms / 2;
	struct lane_record record;
	struct lane_pass *pass;

	(void)fd;
	(void)what;
	/* Whether it still refuses: new commands do not ask while it does. */
	if (lanes->refused)
		(void)!lanes_ask(lanes, "renew", &lanes->refused_ref, NULL);
	LIST_FOREACH(pass, &lanes->passes, link)
	if (pass->inside && lanes_read(lanes, &pass->ref, &record) && lane_lease_is_held(&record) &&
		record.until_ms < soon)
		(void)!lanes_ask(lanes, "renew", &pass->ref, NULL);
}

void
lanes_on_redis(struct lanes *lanes, bool up)
{
	struct lane_pass *pass, *next;

	if (!up)
		return;
	lanes->refused = false;
	/* Timers do it, so that none is called from here. */
	for (pass = LIST_FIRST(&lanes->passes); pass != NULL; pass = next) {
		next = LIST_NEXT(pass, link);
		if (pass->waits)
			event_active(pass->timer, EV_TIMEOUT, 0);
	}
}

struct lanes *
lanes_new(const struct lanes_options *options)
{
	struct lanes *lanes = alloc_zero(1, sizeof *lanes);
	struct timeval tv;

	lanes->options = *options;
	if (lanes->options.lease_ms == 0)
		lanes->options.lease_ms = LEASE_MS;
	if (lanes->options.deadline_ms == 0)
		lanes->options.deadline_ms = DEADLINE_MS;
	lanes->forgetting = (struct lane_forgetting){ .is_idle = lane_is_idle, .arg = lanes };
	tv = clock_tv(lanes->options.lease_ms / 4 + 1);
	lanes->renewal = event_new(options->base, -1, EV_PERSIST, lanes_renew, lanes);
	if (lanes->renewal == NULL || event_add(lanes->renewal, &tv) != 0)
		abort();
	return lanes;
}

void
lanes_free(struct lanes *lanes)
{
	if (lanes == NULL)
		return;
	while (!LIST_EMPTY(&lanes->asks)) {
		redis_forget(lanes->options.redis, LIST_FIRST(&lanes->asks));
		ask_free(LIST_FIRST(&lanes->asks));
	}
	event_free(lanes->renewal);
	free(lanes);
}
