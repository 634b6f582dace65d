/*
 * sandbox_teller.c - marks per slot, a few calls at a time.
 *
 * Of one slot one call is under way at most, so that what is told later is newer. A mark that comes meanwhile stands
 * until the answer. What was told last is remembered here only: another process in this one's place tells all anew, which Redis
 * takes for nothing new.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_teller.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/sandbox_fields.h"
#include "cluster/sandbox_script.h"
#include "cluster/sandbox_share.h"
#include "redis/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT_ONCE = 64, SIGN_MS = 5000 };

struct note {
	struct sandbox_teller *teller;
	char uid[ID_UUID_SIZE]; /* of what is being told */
	uint64_t digest, told; /* being told, and told last */
	uint64_t version; /* the newest that was answered: others know it */
	bool marked, forced, busy;
	int64_t heartbeat_ms, activity_ms; /* told last */
};

struct sandbox_teller {
	struct sandbox_teller_options options;
	struct shm_sandboxes *table;
	struct note *notes; /* per slot */
	uint32_t count;
	uint32_t marked, forced, waiting;
	uint32_t next; /* slot to look at first */
	char epoch[ID_UUID_SIZE]; /* to be told when nothing is forced; "": was told */
};

static void tell_next(struct sandbox_teller *teller);

static void
mark(struct sandbox_teller *teller, struct note *note, bool forced)
{
	teller->marked += !note->marked;
	note->marked = true;
	teller->forced += forced && !note->forced;
	note->forced |= forced;
}

static void
unmark(struct sandbox_teller *teller, struct note *note)
{
	teller->marked -= note->marked;
	note->marked = false;
}

static void
settle_force(struct sandbox_teller *teller, struct note *note)
{
	teller->forced -= note->forced;
	note->forced = false;
}

static uint32_t
slot_of(const struct note *note)
{
	return (uint32_t)(note - note->teller->notes);
}

static void
lose(struct note *note, enum share_result result)
{
	struct sandbox_teller *teller = note->teller;
	struct sandbox_record record;

	if (!sandbox_table_read(teller->table, slot_of(note), &record) || strcmp(record.uid, note->uid) != 0)
		return;
	log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = record.id }, "sandbox %s",
		result == SHARE_GONE ? "was deleted by way of another server"
				     : "has lost its id to one that another server made");
	teller->options.unwanted(teller->options.ctx, slot_of(note), &record);
}

/* Another server took this one for gone, and goes on with it. */
static void
follow(struct note *note)
{
	struct sandbox_teller *teller = note->teller;
	struct sandbox_record record;
	struct err err;

	if (!sandbox_table_read(teller->table, slot_of(note), &record) || strcmp(record.uid, note->uid) != 0)
		return;
	log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = record.id },
		"another server has taken over this sandbox, and goes on with it");
	/* If it is not read now, all of them are compared now and then. */
	(void)!sandbox_share_refresh(teller->options.share, record.id, record.uid, (struct share_to){ 0 }, &err);
}

static void
on_told(void *arg, const struct share_answer *answer, const struct err *why)
{
	struct note *note = arg;
	struct sandbox_teller *teller = note->teller;

	note->busy = false;
	teller->waiting--;
	if (why != NULL) {
		mark(teller, note, false); /* until the next tick */
		return;
	}
	note->told = note->digest;
	if (answer->version > 0 && (uint64_t)answer->version > note->version)
		note->version = (uint64_t)answer->version;
	settle_force(teller, note);
	if (answer->result == SHARE_GONE || answer->result == SHARE_TAKEN)
		lose(note, answer->result);
	else if (answer->result == SHARE_MOVED)
		follow(note);
	tell_next(teller);
}

static bool
is_to_be_told(const struct sandbox_record *record)
{
	return record->home[0] == '\0' && record->status != SANDBOX_DELETING && record->status != SANDBOX_DOUBTFUL;
}

/* False: it can't be told now. */
static bool
tell_one(struct sandbox_teller *teller, struct note *note)
{
	struct sandbox_record record;
	uint64_t digest;
	struct err err;

	unmark(teller, note);
	if (!sandbox_table_read(teller->table, slot_of(note), &record) || !is_to_be_told(&record)) {
		settle_force(teller, note);
		return true;
	}
	digest = sandbox_fields_digest(&record);
	if (!note->forced && digest == note->told)
		return true;
	if (strcmp(note->uid, record.uid) != 0)
		note->version = 0;
	memcpy(note->uid, record.uid, sizeof note->uid);
	if (sandbox_share_tell(teller->options.share, &record, note->version,
		    (struct share_to){ .fn = on_told, .arg = note }, &err) != 0) {
		mark(teller, note, false);
		return false;
	}
	note->digest = digest;
	note->busy = true;
	teller->waiting++;
	return true;
}

static void
tell_epoch(struct sandbox_teller *teller)
{
	struct redis_args args;
	struct err err;

	redis_args_init(&args);
	redis_args_text(&args, "SET");
	redis_args_format(
		&args, "%stold:%s", teller->options.prefix, sandbox_share_mirror(teller->options.share)->replica);
	redis_args_text(&args, teller->epoch);
	redis_args_text(&args, "PX");
	redis_args_number(&args, SANDBOX_TOLD_TTL_MS);
	if (redis_send(teller->options.redis, &args,
		    (struct redis_reply_to){ .deadline_ms = teller->options.deadline_ms }, &err) == 0)
		teller->epoch[0] = '\0';
}

static void
tell_next(struct sandbox_teller *teller)
{
	for (uint32_t looked = 0; looked < teller->count && teller->marked > 0 && teller->waiting < AT_ONCE;
		looked++) {
		struct note *note = &teller->notes[teller->next];

		teller->next = teller->next + 1 < teller->count ? teller->next + 1 : 0;
		if (note->marked && !note->busy && !tell_one(teller, note))
			return;
	}
	if (teller->forced == 0 && teller->waiting == 0 && teller->epoch[0] != '\0')
		tell_epoch(teller);
}

void
sandbox_teller_mark(struct sandbox_teller *teller, uint32_t slot)
{
	if (slot >= teller->count)
		return;
	teller->next = teller->waiting == 0 && teller->marked == 0 ? slot : teller->next;
	mark(teller, &teller->notes[slot], false);
	tell_next(teller);
}

void
sandbox_teller_all(struct sandbox_teller *teller, const char *epoch)
{
	uint32_t bound = sandbox_table_bound(teller->table);

	snprintf(teller->epoch, sizeof teller->epoch, "%s", epoch);
	for (uint32_t slot = 0; slot < bound && slot < teller->count; slot++)
		mark(teller, &teller->notes[slot], true);
	tell_next(teller);
}

bool
sandbox_teller_is_done(const struct sandbox_teller *teller)
{
	return teller->marked == 0 && teller->waiting == 0 && teller->epoch[0] == '\0';
}

/* --- signs of life --- */

/* A heartbeat is told at once, since its client sends few; uses now and then, as long as they go on. */
static bool
has_signs(const struct note *note, const struct sandbox_record *record)
{
	return record->heartbeat_ms > note->heartbeat_ms || record->activity_ms >= note->activity_ms + SIGN_MS;
}

static void
note_signs(struct note *note, const struct sandbox_record *record)
{
	if (record->heartbeat_ms > note->heartbeat_ms)
		note->heartbeat_ms = record->heartbeat_ms;
	if (record->activity_ms > note->activity_ms)
		note->activity_ms = record->activity_ms;
}

void
sandbox_teller_heard(struct sandbox_teller *teller, uint32_t slot, const struct sandbox_record *sign)
{
	if (slot < teller->count)
		note_signs(&teller->notes[slot], sign);
}

static void
sign_one(struct sandbox_teller *teller, uint32_t slot)
{
	struct note *note = &teller->notes[slot];
	struct sandbox_record record;
	struct err err;

	if (!sandbox_table_read(teller->table, slot, &record) || record.status != SANDBOX_READY)
		return;
	if (record.home[0] != '\0' && teller->options.is_busy(teller->options.ctx, slot, &record))
		record.activity_ms = clock_boot_ms();
	if (!has_signs(note, &record) ||
		sandbox_share_sign(teller->options.share, &record, (struct share_to){ 0 }, &err) != 0)
		return;
	note_signs(note, &record);
}

void
sandbox_teller_tick(struct sandbox_teller *teller)
{
	uint32_t bound = sandbox_table_bound(teller->table);

	if (!redis_is_up(teller->options.redis))
		return;
	tell_next(teller);
	for (uint32_t slot = 0; slot < bound && slot < teller->count; slot++)
		sign_one(teller, slot);
}

/* --- the teller itself --- */

struct sandbox_teller *
sandbox_teller_new(const struct sandbox_teller_options *options)
{
	struct sandbox_teller *teller = alloc_zero(1, sizeof *teller);

	teller->options = *options;
	teller->table = sandbox_share_mirror(options->share)->table;
	teller->count = sandbox_table_capacity(teller->table);
	teller->notes = alloc_zero(teller->count, sizeof *teller->notes);
	for (uint32_t slot = 0; slot < teller->count; slot++)
		teller->notes[slot].teller = teller;
	return teller;
}

void
sandbox_teller_free(struct sandbox_teller *teller)
{
	if (teller == NULL)
		return;
	for (uint32_t slot = 0; slot < teller->count; slot++)
		if (teller->notes[slot].busy)
			sandbox_share_forget(teller->options.share, &teller->notes[slot]);
	free(teller->notes);
	free(teller);
}
