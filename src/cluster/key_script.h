/*
 * key_script.h - the scripts of what Idempotency-Keys stand for, shared by all servers: the first claim of a key stands.
 *
 * A claim is a text of the server's that names what the key stands for; its mark names this very claim, so that who
 * renews or gives up one does so only while it is there. Each script answers a list of a word, Redis' time in
 * milliseconds, and what follows:
 *
 *   get      there, claim, mark, ended (1 or 0), age_ms | none
 *   put      made, mark | there, as get
 *   renew    made, mark | stale
 *   give up  done
 *   settle   done | none
 *   again    done | there, as get
 *
 * The age counts from the first claim of the key, renewals do not change it. settle: what it stands for has ended.
 * again: what was said before, to a Redis that may have lost it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_KEY_SCRIPT_H
#define ORCHARD_CLUSTER_KEY_SCRIPT_H

#include "redis/client.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const struct redis_script key_script_get;
extern const struct redis_script key_script_put;
extern const struct redis_script key_script_renew;
extern const struct redis_script key_script_give_up;
extern const struct redis_script key_script_settle;
extern const struct redis_script key_script_again;

/* Which key: its digest as hex, in which its tenant is. */
struct key_name {
	const char *prefix; /* of every key in Redis */
	const char *digest;
};

struct key_text {
	const char *claim; /* borrowed */
	size_t len;
	const char *mark; /* this server's, never used before: a UUID */
	int64_t keep_ms;
};

void key_script_get_args(struct redis_args *args, const struct key_name *name);
/* Asked again with the same mark, since the answer was lost, it is made, too. */
void key_script_put_args(struct redis_args *args, const struct key_name *name, const struct key_text *text);
/* In the place of the claim with that mark, if that has not ended. */
void key_script_renew_args(
	struct redis_args *args, const struct key_name *name, const char *mark, const struct key_text *text);
void key_script_give_up_args(struct redis_args *args, const struct key_name *name, const char *mark);
/* Known for that long from now on, and not longer than it was to be. */
void key_script_settle_args(struct redis_args *args, const struct key_name *name, int64_t keep_ms);

struct key_past {
	const char *before; /* mark of the claim in whose place it was made; "": it was the key's first */
	int64_t age_ms; /* of the key's first claim */
	bool ended;
};
/* Where the key is free, or has the claim before still. */
void key_script_again_args(struct redis_args *args, const struct key_name *name, const struct key_text *text,
	const struct key_past *past);

#endif
