/*
 * sandbox_note.c - that a terminal is open stands in its sandbox's record, for the rules that end unused ones.
 *
 * Gateways of several generations may count in one record. One that is killed leaves its share behind; so a count is
 * believed only while somebody says it again, and whoever finds one that nobody did starts over.
 */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include "base/clock.h"
#include "base/err.h"
#include "ipc/sandbox_table.h"
#include "ipc/shm.h"
#include "master/role.h"

#include <stdio.h>
#include <string.h>

static int
change_note(struct sandbox_record *record, void *arg, struct err *err)
{
	const int *change = arg;
	int64_t now = clock_boot_ms();

	if (record->status == SANDBOX_DELETING || record->status == SANDBOX_DOUBTFUL)
		return err_set(err, ERR_NOT_FOUND, "it is going");
	if (!sandbox_has_terminals(record, now))
		record->terminals = *change == 0 ? 1 : 0;
	if (*change > 0)
		record->terminals++;
	else if (*change < 0 && record->terminals > 0)
		record->terminals--;
	record->terminals_ms = record->activity_ms = now;
	return 0;
}

static bool
note_write(const struct terminal *terminal, int change)
{
	struct shm_sandboxes *table = shm_sandboxes(terminal->gateway->env->shm);
	struct err err;

	return sandbox_table_change(
		       table, terminal->offer.slot, terminal->offer.sandbox_uid, change_note, &change, &err) == 0;
}

void
sandbox_note_open(const struct terminal *terminal)
{
	note_write(terminal, 1);
}

void
sandbox_note_end(const struct terminal *terminal)
{
	note_write(terminal, -1);
}

bool
sandbox_note_again(const struct terminal *terminal)
{
	return note_write(terminal, 0);
}

bool
sandbox_note_gone(const struct terminal *terminal, char *ret_words, size_t size)
{
	struct sandbox_record record;

	snprintf(ret_words, size, "sandbox deleted");
	if (!sandbox_table_read(shm_sandboxes(terminal->gateway->env->shm), terminal->offer.slot, &record) ||
		strcmp(record.uid, terminal->offer.sandbox_uid) != 0)
		return true;
	if (record.status != SANDBOX_DELETING && record.status != SANDBOX_DOUBTFUL)
		return false;
	if (record.reap_rule[0] != '\0' && strcmp(record.reap_rule, "delete") != 0)
		snprintf(ret_words, size, "sandbox deleted: removed by the rule \"%s\"", record.reap_rule);
	return true;
}
