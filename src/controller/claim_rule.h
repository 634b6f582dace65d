/*
 * claim_rule.h - the Lease that says which server a namespace belongs to, as facts and as JSON.
 *
 * Clocks of machines are not compared: a holder is gone when its record has not changed for its duration by our clock. Time
 * in which nobody looked does not count, since it could not be renewed then either while the API server was away.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_CLAIM_RULE_H
#define ORCHARD_CONTROLLER_CLAIM_RULE_H

#include <stdbool.h>
#include <stdint.h>

struct json_object;

#define CLAIM_LEASE "orchard"

/*
 * TRUST_MS: how long after it was asked for a renewal is worth something to its holder; the rest is for what is under way.
 * ATTEMPT_MS: how long an answer may take; with twice that a renewal still comes in time. BLIND_MS: a longer pause between
 * two looks is one in which nobody looked.
 */
enum {
	CLAIM_DURATION_MS = 15000,
	CLAIM_TRUST_MS = 10000,
	CLAIM_ATTEMPT_MS = 5000,
	CLAIM_BLIND_MS = 6000,
	CLAIM_HOLDER_SIZE = 256,
	CLAIM_TIME_SIZE = 64
};

/* What the record says, and since when it has said just that. All zero: there is none. */
struct claim_sight {
	bool there;
	char holder[CLAIM_HOLDER_SIZE]; /* "": nobody */
	char renewed[CLAIM_TIME_SIZE]; /* as its holder wrote it: compared, never read */
	int64_t transitions;
	int64_t duration_ms;
	int64_t since_ms, looked_ms; /* by clock_boot_ms() */
};

/* lease NULL: there is none. */
void claim_rule_see(struct claim_sight *sight, struct json_object *lease, int64_t now_ms);

enum claim_owner { CLAIM_FREE, CLAIM_OURS, CLAIM_THEIRS };
enum claim_owner claim_rule_owner(const struct claim_sight *sight, const char *self, int64_t now_ms);

/*
 * The record as self holds it from now on, or nobody (self ""); what else stands in it, and the version that it replaces,
 * stay. standing NULL: a new one. wall_us: for people.
 */
struct json_object *
claim_rule_make(struct json_object *standing, const char *space, const char *self, int64_t wall_us);

#endif
