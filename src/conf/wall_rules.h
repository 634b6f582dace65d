/*
 * wall_rules.h - the system calls that a sandbox does not get, rule by rule, as the settings leave them.
 *
 * For those who make a filter of them: a deny list, what no rule matches is allowed.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONF_WALL_RULES_H
#define ORCHARD_CONF_WALL_RULES_H

#include <stdint.h>

struct config;

enum wall_compare { WALL_EQ, WALL_NE, WALL_GT, WALL_MASKED_EQ };
enum { WALL_CONDITIONS = 2 };

struct wall_condition {
	unsigned arg;
	enum wall_compare compare;
	uint64_t value;
	uint64_t mask; /* WALL_MASKED_EQ: of the argument */
};

struct wall_rule {
	const char *call; /* may be unknown to this machine */
	int answer; /* errno */
	unsigned count;
	struct wall_condition when[WALL_CONDITIONS]; /* all of them; on different arguments */
};

/* Nonzero ends the walk. */
typedef int wall_rule_f(const struct wall_rule *rule, void *arg);
/* Hands every rule that is in force to emit; returns what ended the walk, or 0. */
int wall_rules_each(const struct config *config, wall_rule_f *emit, void *arg);

#endif
