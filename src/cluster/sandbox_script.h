/*
 * sandbox_script.h - the scripts that change what replicas share about a sandbox, and the names of the keys.
 *
 * Each is one change: it compares the life (uid), writes, raises the version and appends to the stream of changes, all or
 * nothing, and may be asked twice. Each answers a list of a word, Redis' time in milliseconds, and what follows:
 *
 *   create  made, version | there, record (as HGETALL) | gone
 *   tell    told, version | same, version | gone | taken | moved
 *   patch   done, record | none
 *   delete  done | used, heartbeat_ms, activity_ms | none
 *   finish  done
 *   look    there, record | gone, rule | none, 1 if it can't just have got lost
 *   sign    done | none
 *   adopt   done, record | gone | moved
 *   orphan  kept | none
 *
 * gone: this life was deleted, and does not come back. none: this life is not there. used: there was a newer sign of life than the one it was
 * judged by. taken: another life has the id. moved: another server is its home. kept: that life is known, or nobody can be sure that it is not.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SANDBOX_SCRIPT_H
#define ORCHARD_CLUSTER_SANDBOX_SCRIPT_H

#include "redis/client.h"

#include <stdint.h>

struct sandbox_record;

extern const struct redis_script sandbox_script_create;
extern const struct redis_script sandbox_script_tell;
extern const struct redis_script sandbox_script_patch;
extern const struct redis_script sandbox_script_delete;
extern const struct redis_script sandbox_script_finish;
extern const struct redis_script sandbox_script_look;
extern const struct redis_script sandbox_script_sign;
extern const struct redis_script sandbox_script_adopt;
extern const struct redis_script sandbox_script_orphan;

/*
 * A record whose home is silent so long is dropped. What its home has told of all of its records is known for longer: by
 * it the others see that such a record is gone, and not just lost.
 */
enum { SANDBOX_RECORD_TTL_MS = 7 * 24 * 3600 * 1000, SANDBOX_TOLD_TTL_MS = 2 * SANDBOX_RECORD_TTL_MS };

/* Who asks, and the bounds; the same for all scripts of a process. */
struct sandbox_scripts {
	const char *prefix; /* of every key */
	const char *replica;
	const char *host;
	int64_t record_ttl_ms; /* of a record that its home does not tell of any more */
	int64_t tombstone_ttl_ms;
	int64_t changes; /* how many the stream keeps */
};

struct shared_clock;

/* The words of each: keys first, as redis_run() wants them. They borrow from what they are given. */
/* env: JSON, kept until it is made, for whoever goes on with that; NULL: none. */
void sandbox_script_create_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const char *env, const struct shared_clock *shared);
/* told: the newest version that was answered to a tell of this life, which others know; 0: none. */
void sandbox_script_tell_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, uint64_t told, const struct shared_clock *shared);

/* What a PATCH asks for. NULL, negative: unchanged. */
struct sandbox_patch_fields {
	const char *labels;
	int64_t ttl_ms, idle_timeout_ms;
};
void sandbox_script_patch_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const struct sandbox_patch_fields *patch,
	const struct shared_clock *shared);
/* judged: by a rule, from the ages in record; what has been used since is left alone. */
void sandbox_script_delete_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const char *rule, const struct shared_clock *judged);
/* Its home has nothing of it any more. The rule is record->reap_rule. */
void sandbox_script_finish_args(
	struct redis_args *args, const struct sandbox_scripts *scripts, const struct sandbox_record *record);
/* home: of which it is asked whether it has told everything; "": nobody. */
void sandbox_script_look_args(struct redis_args *args, const struct sandbox_scripts *scripts, const char *tenant,
	const char *id, const char *home);
/* That life, whose home is record->home, is this server's from then on, if its home is this one or silent for so long. */
void sandbox_script_adopt_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, int64_t silent_ms, const struct shared_clock *shared);
/* silent_ms: a server that has not said for so long that it lives is not waited for. */
void sandbox_script_orphan_args(struct redis_args *args, const struct sandbox_scripts *scripts, const char *id,
	const char *uid, int64_t silent_ms);
/* Heartbeats and uses, as record has them. */
void sandbox_script_sign_args(struct redis_args *args, const struct sandbox_scripts *scripts,
	const struct sandbox_record *record, const struct shared_clock *shared);

#endif
