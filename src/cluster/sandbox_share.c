/* sandbox_share.c - calls on their way. */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_share_priv.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "cluster/sandbox_fields.h"
#include "redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- calls --- */

static struct share_call *
call_new(struct sandbox_share *share, enum share_kind kind, struct share_to to)
{
	struct share_call *call = alloc_zero(1, sizeof *call);

	call->share = share;
	call->kind = kind;
	call->to = to;
	LIST_INSERT_HEAD(&share->calls, call, link);
	return call;
}

/* Frees the call when it cannot be sent. */
static int
call_send(
	struct share_call *call, const struct redis_script *script, const struct redis_args *args, struct err *err)
{
	const struct sandbox_share_options *options = &call->share->options;

	if (redis_run(options->redis, script, args,
		    (struct redis_reply_to){
			    .fn = share_on_answer, .ctx = call, .deadline_ms = options->deadline_ms },
		    err) == 0)
		return 0;
	call->to.fn = NULL;
	share_call_end(call, NULL, err);
	return -1;
}

static struct share_call *
call_about(
	struct sandbox_share *share, enum share_kind kind, const struct sandbox_record *record, struct share_to to)
{
	struct share_call *call = call_new(share, kind, to);

	memcpy(call->id, record->id, sizeof call->id);
	memcpy(call->uid, record->uid, sizeof call->uid);
	memcpy(call->tenant, record->tenant, sizeof call->tenant);
	return call;
}

/* Ages can't be told before Redis' clock is known. */
static int
check_clock(const struct sandbox_share *share, struct err *err)
{
	const struct redis *redis = share->options.redis;

	if (share->clock_known)
		return 0;
	if (!redis_is_up(redis))
		return err_set(err, ERR_UNAVAILABLE, "Redis is away: %s", redis_problem(redis));
	return err_set(err, ERR_UNAVAILABLE, "Redis has not told its time yet");
}

int
sandbox_share_create(struct sandbox_share *share, const struct sandbox_record *record, const char *env,
	struct share_to to, struct err *err)
{
	struct redis_args args;

	if (check_clock(share, err) != 0)
		return -1;
	sandbox_script_create_args(&args, &share->options.scripts, record, env, &share->clock);
	return call_send(call_about(share, CALL_CREATE, record, to), &sandbox_script_create, &args, err);
}

int
sandbox_share_tell(struct sandbox_share *share, const struct sandbox_record *record, uint64_t told,
	struct share_to to, struct err *err)
{
	struct redis_args args;

	if (check_clock(share, err) != 0)
		return -1;
	sandbox_script_tell_args(&args, &share->options.scripts, record, told, &share->clock);
	return call_send(call_about(share, CALL_PLAIN, record, to), &sandbox_script_tell, &args, err);
}

int
sandbox_share_patch(struct sandbox_share *share, const struct sandbox_record *record,
	const struct sandbox_patch_fields *patch, struct share_to to, struct err *err)
{
	struct redis_args args;

	if (check_clock(share, err) != 0)
		return -1;
	sandbox_script_patch_args(&args, &share->options.scripts, record, patch, &share->clock);
	return call_send(call_about(share, CALL_PATCH, record, to), &sandbox_script_patch, &args, err);
}

int
sandbox_share_delete(struct sandbox_share *share, const struct sandbox_record *record, const char *rule,
	bool judged, struct share_to to, struct err *err)
{
	struct redis_args args;

	if (judged && check_clock(share, err) != 0)
		return -1;
	sandbox_script_delete_args(&args, &share->options.scripts, record, rule, judged ? &share->clock : NULL);
	return call_send(call_about(share, CALL_DELETE, record, to), &sandbox_script_delete, &args, err);
}

bool
sandbox_share_has_finished(const struct sandbox_share *share, const char *uid)
{
	for (uint32_t i = 0; i < share->finished_count && i < SHARE_FINISHED; i++)
		if (strcmp(share->finished[i], uid) == 0)
			return true;
	return false;
}

int
sandbox_share_finish(
	struct sandbox_share *share, const struct sandbox_record *record, struct share_to to, struct err *err)
{
	struct redis_args args;

	if (!sandbox_share_has_finished(share, record->uid))
		memcpy(share->finished[share->finished_count++ % SHARE_FINISHED], record->uid, sizeof record->uid);
	sandbox_script_finish_args(&args, &share->options.scripts, record);
	return call_send(call_about(share, CALL_PLAIN, record, to), &sandbox_script_finish, &args, err);
}

int
sandbox_share_sign(
	struct sandbox_share *share, const struct sandbox_record *record, struct share_to to, struct err *err)
{
	struct redis_args args;

	if (check_clock(share, err) != 0)
		return -1;
	sandbox_script_sign_args(&args, &share->options.scripts, record, &share->clock);
	return call_send(call_about(share, CALL_PLAIN, record, to), &sandbox_script_sign, &args, err);
}

int
sandbox_share_adopt(struct sandbox_share *share, const struct sandbox_record *record, int64_t silent_ms,
	struct share_to to, struct err *err)
{
	struct redis_args args;

	if (check_clock(share, err) != 0)
		return -1;
	sandbox_script_adopt_args(&args, &share->options.scripts, record, silent_ms, &share->clock);
	return call_send(call_about(share, CALL_ADOPT, record, to), &sandbox_script_adopt, &args, err);
}

int
sandbox_share_orphan(struct sandbox_share *share, const char *id, const char *uid, int64_t silent_ms,
	struct share_to to, struct err *err)
{
	struct redis_args args;

	sandbox_script_orphan_args(&args, &share->options.scripts, id, uid, silent_ms);
	return call_send(call_new(share, CALL_PLAIN, to), &sandbox_script_orphan, &args, err);
}

int
sandbox_share_look(
	struct sandbox_share *share, const char *tenant, const char *id, struct share_to to, struct err *err)
{
	struct share_call *call = call_new(share, CALL_LOOK, to);
	struct redis_args args;

	snprintf(call->tenant, sizeof call->tenant, "%s", tenant);
	snprintf(call->id, sizeof call->id, "%s", id);
	sandbox_script_look_args(&args, &share->options.scripts, call->tenant, call->id, "");
	return call_send(call, &sandbox_script_look, &args, err);
}

void
share_verify(struct share_call *call)
{
	const struct sandbox_share_options *options = &call->share->options;
	struct redis_args args;
	struct err err;

	sandbox_script_look_args(&args, &options->scripts, call->tenant, call->id, call->home);
	/* Refused: it is away, and this is done when it is back. */
	call->waits = redis_run(options->redis, &sandbox_script_look, &args,
			      (struct redis_reply_to){
				      .fn = share_on_answer, .ctx = call, .deadline_ms = options->deadline_ms },
			      &err) != 0;
}

int
sandbox_share_refresh(
	struct sandbox_share *share, const char *id, const char *uid, struct share_to to, struct err *err)
{
	struct share_call *call = call_new(share, CALL_REFRESH, to);
	struct sandbox_record there;
	struct redis_args args;

	snprintf(call->id, sizeof call->id, "%s", id);
	snprintf(call->uid, sizeof call->uid, "%s", uid);
	if (!sandbox_table_find(share->mirror.table, id, &there, NULL))
		there.home[0] = there.tenant[0] = '\0';
	sandbox_script_look_args(&args, &share->options.scripts, there.tenant, call->id, there.home);
	return call_send(call, &sandbox_script_look, &args, err);
}

/* --- the share itself --- */

static void
on_time(void *ctx, const struct redis_answer *answer)
{
	struct sandbox_share *share = ctx;
	int64_t seconds, us;

	if (redis_answer_number(redis_answer_item(answer, 0), &seconds) &&
		redis_answer_number(redis_answer_item(answer, 1), &us))
		share_learn_time(share, seconds * 1000 + us / 1000);
}

void
sandbox_share_on_redis(struct sandbox_share *share, bool up)
{
	const struct sandbox_share_options *options = &share->options;
	struct redis_args args;
	struct share_call *call;
	struct err err;

	if (!up)
		return;
	shared_return_up(&share->back, clock_boot_ms());
	LIST_FOREACH(call, &share->calls, link)
	if (call->waits)
		share_verify(call);
	redis_args_init(&args);
	redis_args_text(&args, "TIME");
	/* Refused: it is down again, and this is called when it is back. */
	(void)!redis_send(options->redis, &args,
		(struct redis_reply_to){ .fn = on_time, .ctx = share, .deadline_ms = options->deadline_ms }, &err);
}

struct sandbox_share *
sandbox_share_new(const struct sandbox_share_options *options)
{
	struct sandbox_share *share = alloc_zero(1, sizeof *share);

	share->options = *options;
	share->mirror = (struct sandbox_mirror){
		.table = options->table,
		.replica = options->scripts.replica,
		.host = options->scripts.host,
		.adopts = options->adopts,
	};
	LIST_INIT(&share->calls);
	return share;
}

void
sandbox_share_free(struct sandbox_share *share)
{
	struct share_call *call;

	if (share == NULL)
		return;
	while ((call = LIST_FIRST(&share->calls)) != NULL) {
		redis_forget(share->options.redis, call);
		LIST_REMOVE(call, link);
		free(call);
	}
	redis_forget(share->options.redis, share);
	free(share);
}

void
sandbox_share_forget(struct sandbox_share *share, const void *arg)
{
	struct share_call *call;

	LIST_FOREACH(call, &share->calls, link)
	if (call->to.arg == arg)
		call->to.fn = NULL;
}

const struct sandbox_mirror *
sandbox_share_mirror(const struct sandbox_share *share)
{
	return &share->mirror;
}

const struct shared_clock *
sandbox_share_clock(const struct sandbox_share *share)
{
	return &share->clock;
}
