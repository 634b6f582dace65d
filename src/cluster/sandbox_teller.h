/*
 * sandbox_teller.h - telling the other replicas how our sandboxes are.
 *
 * In one process of a server. Whoever changes a sandbox need not think of it: its slot is marked, and what of it differs
 * from what was told is told, in the end always the newest. After a cut or a flush everything is told again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SANDBOX_TELLER_H
#define ORCHARD_CLUSTER_SANDBOX_TELLER_H

#include "ipc/sandbox_table.h"

#include <stdbool.h>
#include <stdint.h>

struct redis;
struct sandbox_share;
struct sandbox_teller;

struct sandbox_teller_options {
	struct redis *redis; /* the share's */
	struct sandbox_share *share; /* all borrowed */
	const char *prefix;
	uint32_t deadline_ms;
	/* That life is deleted, or has lost its id to another one: it is still in the table, and has to go. */
	void (*unwanted)(void *ctx, uint32_t slot, const struct sandbox_record *record);
	/* Commands of it run here, or terminals are open. */
	bool (*is_busy)(void *ctx, uint32_t slot, const struct sandbox_record *record);
	void *ctx;
};

struct sandbox_teller *sandbox_teller_new(const struct sandbox_teller_options *options);
/* Before the share. */
void sandbox_teller_free(struct sandbox_teller *teller);

/* Something about the sandbox in that slot may have changed. */
void sandbox_teller_mark(struct sandbox_teller *teller, uint32_t slot);
/* Tells all of them, then the others that in this Redis (its epoch, changes.h) all of ours are. */
void sandbox_teller_all(struct sandbox_teller *teller, const char *epoch);
/* Those signs of life were told by another server, and need not be told again. */
void sandbox_teller_heard(struct sandbox_teller *teller, uint32_t slot, const struct sandbox_record *sign);
/* Each second: signs of life, of foreign sandboxes, too, and what could not be told. */
void sandbox_teller_tick(struct sandbox_teller *teller);
/* Nothing is left to be told. */
bool sandbox_teller_is_done(const struct sandbox_teller *teller);

#endif
