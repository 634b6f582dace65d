/*
 * sandbox_answer.c - what Redis' answers about sandboxes mean, and how they come into the shared table.
 *
 * A look may come from any process, while another one hears of changes. What it has read could be gone by the time it
 * is put into the table, and nobody would take it out again. So it looks once more after that: what is gone then is
 * taken out, and of what goes later the one that hears changes learns when it is in the table. A look without an answer
 * says nothing of the kind: what it is about stays, since others may be at work in it, and is looked for again.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_share_priv.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/sandbox_fields.h"
#include "redis/client.h"

#include <stdlib.h>
#include <string.h>

/* After that it is left to the comparison of everything. */
enum { VERIFY_TRIES = 5 };

void
share_call_end(struct share_call *call, const struct share_answer *answer, const struct err *why)
{
	struct share_to to = call->to;

	LIST_REMOVE(call, link);
	free(call);
	if (to.fn != NULL)
		to.fn(to.arg, answer, why);
}

static void
call_result(struct share_call *call, enum share_result result)
{
	share_call_end(call, &(struct share_answer){ .result = result, .rule = "" }, NULL);
}

/* --- what was read of a sandbox --- */

static void
tell_news(struct sandbox_share *share, enum mirror_outcome what, const struct mirror_place *place)
{
	if (what != MIRROR_SAME && what != MIRROR_UNKNOWN && what != MIRROR_IN_PLACE)
		share->options.news(share->options.ctx, what, place);
}

static void
forget(struct sandbox_share *share, const char *id, const char *uid)
{
	struct mirror_place place;

	if (sandbox_mirror_forget(&share->mirror, id, uid, &place))
		tell_news(share, MIRROR_GONE, &place);
}

static enum mirror_outcome
apply(const struct share_call *call, const struct shared_sandbox *theirs)
{
	struct sandbox_share *share = call->share;
	struct sandbox_mirror mirror = share->mirror;
	struct mirror_place place = { 0 };
	enum mirror_outcome outcome;

	/* What was read by chance would not be taken out again. */
	mirror.takes_deleting = mirror.adopts && call->kind == CALL_REFRESH;
	outcome = sandbox_mirror_apply(&mirror, theirs, &place);
	if (outcome == MIRROR_IN_PLACE) {
		forget(share, place.record.id, place.record.uid);
		outcome = sandbox_mirror_apply(&mirror, theirs, &place);
	}
	tell_news(share, outcome, &place);
	return outcome;
}

/* False: not understood, and left alone. */
static bool
read_record(struct share_call *call, const struct redis_answer *answer, struct shared_sandbox *ret_theirs)
{
	struct err err;

	if (sandbox_fields_read(redis_answer_item(answer, 2), &call->share->clock, ret_theirs, &err) == 0)
		return true;
	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = call->id },
		"its record in Redis is left as it is: %s", err.msg);
	return false;
}

/* --- answers --- */

static void verify(struct share_call *call, const struct sandbox_record *record);

static void
on_there(struct share_call *call, const struct redis_answer *answer)
{
	struct shared_sandbox theirs;
	enum mirror_outcome outcome;
	struct err err;

	if (!read_record(call, answer, &theirs)) {
		call_result(call, SHARE_STRANGE);
		return;
	}
	if (call->kind == CALL_REFRESH && call->uid[0] != '\0' && strcmp(call->uid, theirs.record.uid) != 0)
		forget(call->share, call->id, call->uid);
	outcome = apply(call, &theirs);
	if (outcome == MIRROR_NO_ROOM) {
		err_set(&err, ERR_NO_CAPACITY,
			"no room for one more sandbox of another server: raise max_sandboxes");
		share_call_end(call, NULL, &err);
	} else if (outcome == MIRROR_UNKNOWN) {
		share_call_end(call,
			&(struct share_answer){ .result = SHARE_STRAY, .rule = "", .stray = &theirs.record }, NULL);
	} else if (outcome == MIRROR_MADE && call->kind != CALL_REFRESH) {
		verify(call, &theirs.record);
	} else if (theirs.record.status == SANDBOX_DELETING && call->kind == CALL_LOOK) {
		share_call_end(call,
			&(struct share_answer){ .result = SHARE_GONE, .rule = theirs.record.reap_rule }, NULL);
	} else {
		call_result(call, SHARE_THERE);
	}
}

/* It goes on, and nobody waits for it any more. */
static void
let_go(struct share_call *call, const struct err *why)
{
	struct share_to to = call->to;

	call->to.fn = NULL;
	if (to.fn != NULL)
		to.fn(to.arg, NULL, why);
}

static void
verify(struct share_call *call, const struct sandbox_record *record)
{
	struct err err;

	call->creates = call->kind == CALL_CREATE;
	call->kind = CALL_VERIFY;
	memcpy(call->uid, record->uid, sizeof call->uid);
	memcpy(call->home, record->home, sizeof call->home);
	share_verify(call);
	if (!call->waits)
		return;
	err_set(&err, ERR_UNAVAILABLE, "too much is asked of Redis just now; try again");
	let_go(call, &err);
}

/* What is asked for once more after it came into the table. */
static void
on_verified(struct share_call *call, const struct redis_answer *answer)
{
	const struct redis_answer *word = redis_answer_item(answer, 0), *what = redis_answer_item(answer, 2);
	struct share_answer gone = { .result = call->creates ? SHARE_THERE : SHARE_GONE, .rule = "" };
	int64_t certain;

	if (redis_answer_is(word, "there") && !redis_answer_is(redis_answer_field(what, "uid"), call->uid)) {
		/* Another life has the id by now. */
		forget(call->share, call->id, call->uid);
		call->kind = call->creates ? CALL_CREATE : CALL_LOOK;
		on_there(call, answer);
		return;
	}
	/* A Redis that was emptied in between does not know yet what its home is about to tell it. */
	if (redis_answer_is(word, "there") ||
		(redis_answer_is(word, "none") && redis_answer_number(what, &certain) && certain == 0)) {
		call_result(call, SHARE_THERE);
		return;
	}
	forget(call->share, call->id, call->uid);
	if (redis_answer_is(word, "gone"))
		gone.rule = what->text;
	share_call_end(call, &gone, NULL);
}

static void
on_none(struct share_call *call, const struct redis_answer *answer)
{
	int64_t certain = 0;
	struct err err;

	if (call->kind == CALL_LOOK && shared_return_is_fresh(&call->share->back, clock_boot_ms())) {
		err_set(&err, ERR_UNAVAILABLE, "Redis has just come back, and may not have been told of it yet");
		share_call_end(call, NULL, &err);
		return;
	}
	if (call->kind == CALL_REFRESH && call->uid[0] != '\0' &&
		redis_answer_number(redis_answer_item(answer, 2), &certain) && certain == 1)
		forget(call->share, call->id, call->uid);
	call_result(call, SHARE_NONE);
}

static void
on_gone(struct share_call *call, const struct redis_answer *answer)
{
	const struct redis_answer *rule = redis_answer_item(answer, 2);

	if ((call->kind == CALL_REFRESH || call->kind == CALL_ADOPT) && call->uid[0] != '\0')
		forget(call->share, call->id, call->uid);
	share_call_end(call,
		&(struct share_answer){
			.result = SHARE_GONE, .rule = rule->kind == REDIS_STRING ? rule->text : "" },
		NULL);
}

static void
on_used(struct share_call *call, const struct redis_answer *answer)
{
	struct sandbox_record sign = { 0 };
	int64_t heartbeat_ms = 0, activity_ms = 0;
	uint32_t slot;

	if (redis_answer_number(redis_answer_item(answer, 2), &heartbeat_ms) &&
		redis_answer_number(redis_answer_item(answer, 3), &activity_ms)) {
		memcpy(sign.id, call->id, sizeof sign.id);
		memcpy(sign.uid, call->uid, sizeof sign.uid);
		sign.heartbeat_ms = shared_clock_to_boot(&call->share->clock, heartbeat_ms);
		sign.activity_ms = shared_clock_to_boot(&call->share->clock, activity_ms);
		(void)!sandbox_mirror_sign(&call->share->mirror, &sign, &slot);
	}
	call_result(call, SHARE_USED);
}

static void
on_adopted(struct share_call *call, const struct redis_answer *answer)
{
	struct share_answer done = { .result = SHARE_DONE, .rule = "" };
	struct shared_sandbox theirs;
	struct mirror_place place;

	done.env = redis_answer_field(redis_answer_item(answer, 2), "env");
	/* What can't be put into the table now is found as this server's own, and adopted then. */
	if (!read_record(call, answer, &theirs))
		done.result = SHARE_STRANGE;
	else if (sandbox_mirror_adopt(&call->share->mirror, &theirs, &place))
		tell_news(call->share, MIRROR_CHANGED, &place);
	share_call_end(call, &done, NULL);
}

static void
on_done(struct share_call *call, const struct redis_answer *answer)
{
	struct share_answer done = { .result = SHARE_DONE, .rule = "" };
	struct shared_sandbox theirs;

	if (call->kind == CALL_ADOPT) {
		on_adopted(call, answer);
		return;
	}
	if (call->kind == CALL_PATCH && read_record(call, answer, &theirs))
		apply(call, &theirs);
	if (!redis_answer_number(redis_answer_item(answer, 2), &done.version))
		done.version = 0;
	share_call_end(call, &done, NULL);
}

static void
on_word(struct share_call *call, const struct redis_answer *answer)
{
	const struct redis_answer *word = redis_answer_item(answer, 0);

	if (call->kind == CALL_VERIFY)
		on_verified(call, answer);
	else if (redis_answer_is(word, "there"))
		on_there(call, answer);
	else if (redis_answer_is(word, "gone"))
		on_gone(call, answer);
	else if (redis_answer_is(word, "none"))
		on_none(call, answer);
	else if (redis_answer_is(word, "used"))
		on_used(call, answer);
	else if (redis_answer_is(word, "kept"))
		call_result(call, SHARE_THERE);
	else if (redis_answer_is(word, "taken"))
		call_result(call, SHARE_TAKEN);
	else if (redis_answer_is(word, "moved"))
		call_result(call, SHARE_MOVED);
	else
		on_done(call, answer);
}

void
share_learn_time(struct sandbox_share *share, int64_t now_ms)
{
	shared_clock_learn(&share->clock, now_ms, clock_boot_ms());
	share->clock_known = true;
}

void
share_on_answer(void *ctx, const struct redis_answer *answer)
{
	struct share_call *call = ctx;
	int64_t now_ms;
	struct err err;

	if (redis_answer_check(answer, &err) != 0) {
		if (call->kind == CALL_VERIFY && call->tries++ < VERIFY_TRIES) {
			share_verify(call);
			let_go(call, &err);
			return;
		}
		share_call_end(call, NULL, &err);
		return;
	}
	if (redis_answer_number(redis_answer_item(answer, 1), &now_ms))
		share_learn_time(call->share, now_ms);
	on_word(call, answer);
}
