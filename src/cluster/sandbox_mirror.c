/* sandbox_mirror.c - judges under the record's lock what is newer. */
/* SPDX-License-Identifier: MIT */
#include "cluster/sandbox_mirror.h"
#include "base/err.h"
#include "cluster/sandbox_fields.h"

#include <string.h>

static int64_t
later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What is applied, and what came of it. */
struct application {
	const struct shared_sandbox *theirs;
	bool elsewhere;
	enum mirror_outcome outcome;
	struct sandbox_record record;
};

static void
take_signs(struct sandbox_record *record, const struct sandbox_record *theirs)
{
	record->heartbeat_ms = later(record->heartbeat_ms, theirs->heartbeat_ms);
	record->activity_ms = later(record->activity_ms, theirs->activity_ms);
}

/* Ours: what a PATCH can change. */
static void
take_patch(struct sandbox_record *record, const struct sandbox_record *theirs)
{
	memcpy(record->labels, theirs->labels, sizeof record->labels);
	record->ttl_ms = theirs->ttl_ms;
	record->ttl_from_ms = theirs->ttl_from_ms;
	record->idle_timeout_ms = theirs->idle_timeout_ms;
	record->version = theirs->version;
	take_signs(record, theirs);
}

static int
change_own(struct sandbox_record *record, void *arg, struct err *err)
{
	struct application *application = arg;
	const struct sandbox_record *theirs = &application->theirs->record;
	bool unwanted = theirs->status == SANDBOX_DELETING && record->status != SANDBOX_DELETING;

	if (theirs->version <= record->version && !unwanted)
		return err_set(err, ERR_STALE, "nothing new");
	if (theirs->version > record->version)
		take_patch(record, theirs);
	application->outcome = unwanted ? MIRROR_UNWANTED : MIRROR_CHANGED;
	application->record = *record;
	return 0;
}

static enum mirror_outcome
outcome_of(const struct sandbox_record *before, const struct sandbox_record *after)
{
	if (after->status == SANDBOX_DELETING && before->status != SANDBOX_DELETING)
		return MIRROR_ENDS;
	if (after->status == SANDBOX_FAILED && before->status != SANDBOX_FAILED)
		return MIRROR_FAILED;
	return MIRROR_CHANGED;
}

/* What only this server knows of it. */
static void
keep_local(struct sandbox_record *record, const struct sandbox_record *before)
{
	record->terminals = before->terminals;
	record->terminals_ms = before->terminals_ms;
	memcpy(record->last_job, before->last_job, sizeof record->last_job);
	memcpy(record->last_prev, before->last_prev, sizeof record->last_prev);
	take_signs(record, before);
}

/* Another's, or ours that another has adopted: everything else. */
static int
change_mirrored(struct sandbox_record *record, void *arg, struct err *err)
{
	struct application *application = arg;
	struct sandbox_record before = *record;

	if (application->theirs->record.version <= record->version)
		return err_set(err, ERR_STALE, "nothing new");
	*record = application->theirs->record;
	record->elsewhere = application->elsewhere;
	keep_local(record, &before);
	application->outcome = outcome_of(&before, record);
	application->record = *record;
	return 0;
}

static enum mirror_outcome
change(const struct sandbox_mirror *mirror, struct application *application, bool own, struct mirror_place *place)
{
	struct err err;

	if (sandbox_table_change(mirror->table, place->slot, application->theirs->record.uid,
		    own ? change_own : change_mirrored, application, &err) != 0)
		return MIRROR_SAME;
	place->record = application->record;
	return application->outcome;
}

/* Deleting ones are of no use to anybody: whoever asks for the id finds what is remembered of it. */
static enum mirror_outcome
insert(const struct sandbox_mirror *mirror, const struct application *application, struct mirror_place *place)
{
	struct err err;

	if (application->theirs->record.status == SANDBOX_DELETING && !mirror->takes_deleting)
		return MIRROR_SAME;
	place->record = application->theirs->record;
	place->record.elsewhere = application->elsewhere;
	if (sandbox_table_insert(mirror->table, &place->record, &place->slot, &err) == 0)
		return MIRROR_MADE;
	/* Another process was first: what it has put there is as new as this, or its next change is. */
	return err.code == ERR_EXISTS ? MIRROR_SAME : MIRROR_NO_ROOM;
}

/* An older life whose home is this server goes its own way; the new one is found when it is gone. */
static enum mirror_outcome
oust(const struct sandbox_record *there, const struct sandbox_record *theirs)
{
	return there->home[0] != '\0' && there->version < theirs->version ? MIRROR_IN_PLACE : MIRROR_SAME;
}

enum mirror_outcome
sandbox_mirror_apply(
	const struct sandbox_mirror *mirror, const struct shared_sandbox *theirs, struct mirror_place *ret_place)
{
	struct application application = {
		.theirs = theirs,
		.elsewhere = strcmp(theirs->host, mirror->host) != 0,
	};
	bool own = strcmp(theirs->record.home, mirror->replica) == 0;
	bool there = sandbox_table_find(mirror->table, theirs->record.id, &ret_place->record, &ret_place->slot);

	if (there && strcmp(ret_place->record.uid, theirs->record.uid) == 0)
		return change(mirror, &application, own && ret_place->record.home[0] == '\0', ret_place);
	if (own && !mirror->adopts)
		return MIRROR_UNKNOWN;
	if (there)
		return oust(&ret_place->record, &theirs->record);
	return insert(mirror, &application, ret_place);
}

bool
sandbox_mirror_forget(
	const struct sandbox_mirror *mirror, const char *id, const char *uid, struct mirror_place *ret_place)
{
	return sandbox_table_find(mirror->table, id, &ret_place->record, &ret_place->slot) &&
		ret_place->record.home[0] != '\0' && strcmp(ret_place->record.uid, uid) == 0 &&
		sandbox_table_remove(mirror->table, ret_place->slot, uid);
}

static int
change_adopted(struct sandbox_record *record, void *arg, struct err *err)
{
	struct application *application = arg;
	struct sandbox_record before = *record;

	if (record->home[0] == '\0')
		return err_set(err, ERR_STALE, "it is ours");
	*record = application->theirs->record;
	record->home[0] = '\0';
	keep_local(record, &before);
	application->record = *record;
	return 0;
}

bool
sandbox_mirror_adopt(
	const struct sandbox_mirror *mirror, const struct shared_sandbox *theirs, struct mirror_place *ret_place)
{
	struct application application = { .theirs = theirs };
	struct err err;

	if (!sandbox_table_find(mirror->table, theirs->record.id, &ret_place->record, &ret_place->slot)) {
		ret_place->record = theirs->record;
		ret_place->record.home[0] = '\0';
		return sandbox_table_insert(mirror->table, &ret_place->record, &ret_place->slot, &err) == 0;
	}
	if (sandbox_table_change(
		    mirror->table, ret_place->slot, theirs->record.uid, change_adopted, &application, &err) != 0)
		return false;
	ret_place->record = application.record;
	return true;
}

static int
change_signs(struct sandbox_record *record, void *arg, struct err *err)
{
	const struct sandbox_record *sign = arg;

	if (sign->heartbeat_ms <= record->heartbeat_ms && sign->activity_ms <= record->activity_ms)
		return err_set(err, ERR_STALE, "nothing new");
	take_signs(record, sign);
	return 0;
}

bool
sandbox_mirror_sign(const struct sandbox_mirror *mirror, const struct sandbox_record *sign, uint32_t *ret_slot)
{
	struct sandbox_record record, copy = *sign;
	struct err err;

	return sandbox_table_find(mirror->table, sign->id, &record, ret_slot) &&
		sandbox_table_change(mirror->table, *ret_slot, sign->uid, change_signs, &copy, &err) == 0;
}
