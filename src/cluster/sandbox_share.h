/*
 * sandbox_share.h - asking Redis for changes of sandboxes, and putting what it answers into the shared table.
 *
 * One per process, over its connection. Each call ends by its callback, never before it returns: with what came of it, or
 * ERR_UNAVAILABLE, after which it may have been done or not: all of them may be asked again. What an answer says about
 * the table is in it before the callback, and whoever must act on that was told by `news`.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SANDBOX_SHARE_H
#define ORCHARD_CLUSTER_SANDBOX_SHARE_H

#include "cluster/sandbox_mirror.h"
#include "cluster/sandbox_script.h"
#include "cluster/shared_clock.h"

#include "base/cleanup.h"

#include <stdint.h>

struct err;
struct redis;
struct redis_answer;
struct sandbox_share;

/* What an application to the table has changed there, all outcomes but MIRROR_SAME, MIRROR_UNKNOWN and MIRROR_IN_PLACE. */
typedef void sandbox_news_fn(void *ctx, enum mirror_outcome what, const struct mirror_place *place);

struct sandbox_share_options {
	struct redis *redis; /* borrowed */
	struct shm_sandboxes *table;
	struct sandbox_scripts scripts; /* its strings are borrowed */
	bool adopts; /* mirror */
	uint32_t deadline_ms;
	sandbox_news_fn *news;
	void *ctx;
};

struct sandbox_share *sandbox_share_new(const struct sandbox_share_options *options);
/* No callback comes any more. Before its connection. */
void sandbox_share_free(struct sandbox_share *share);
/* Of its connection: to be told of each change, and of it being up at the start. */
void sandbox_share_on_redis(struct sandbox_share *share, bool up);
const struct sandbox_mirror *sandbox_share_mirror(const struct sandbox_share *share);
/* The clock as far as it is known: of no use before the first answer. */
const struct shared_clock *sandbox_share_clock(const struct sandbox_share *share);

enum share_result {
	SHARE_DONE, /* create: *version is its version; tell: other replicas know it now */
	SHARE_THERE, /* create: another life has the id; look: it is in the table */
	SHARE_GONE, /* this life was deleted; look: by that rule */
	SHARE_NONE, /* there is no such life, or id */
	SHARE_TAKEN, /* tell: another life has the id */
	SHARE_MOVED, /* tell, adopt: another server is its home */
	SHARE_USED, /* delete: it was used since it was judged, which is in the table now */
	SHARE_STRAY, /* refresh: it is this server's by what Redis says, and there is no such life here */
	SHARE_STRANGE /* of a version of this server that this one does not understand */
};

struct share_answer {
	enum share_result result;
	int64_t version;
	const char *rule; /* "" unless SHARE_GONE of a look says one */
	const struct redis_answer *env; /* adopt that is done: a string if Redis has it */
	const struct sandbox_record *stray; /* SHARE_STRAY: as Redis has it */
};
/* answer is NULL when there is none: why says so. */
typedef void share_done_fn(void *arg, const struct share_answer *answer, const struct err *why);
struct share_to {
	share_done_fn *fn; /* NULL: nobody wants to know */
	void *arg;
};
/* That arg is not told any more. */
void sandbox_share_forget(struct sandbox_share *share, const void *arg);

/* -1: nothing was sent, and nothing is called: ERR_UNAVAILABLE (also before the first answer), ERR_BUSY. record is borrowed during the call. */
int sandbox_share_create(struct sandbox_share *share, const struct sandbox_record *record, const char *env,
	struct share_to to, struct err *err) MUSTCHECK;
/* told: the newest version that was answered to it before, for this life; 0: none. */
int sandbox_share_tell(struct sandbox_share *share, const struct sandbox_record *record, uint64_t told,
	struct share_to to, struct err *err) MUSTCHECK;
int sandbox_share_patch(struct sandbox_share *share, const struct sandbox_record *record,
	const struct sandbox_patch_fields *patch, struct share_to to, struct err *err) MUSTCHECK;
/* judged: only if it was not used later than record says. */
int sandbox_share_delete(struct sandbox_share *share, const struct sandbox_record *record, const char *rule,
	bool judged, struct share_to to, struct err *err) MUSTCHECK;
int sandbox_share_finish(struct sandbox_share *share, const struct sandbox_record *record, struct share_to to,
	struct err *err) MUSTCHECK;
/* Whether this process has, not long ago: an older copy of Redis may not know. */
bool sandbox_share_has_finished(const struct sandbox_share *share, const char *uid);
int sandbox_share_sign(struct sandbox_share *share, const struct sandbox_record *record, struct share_to to,
	struct err *err) MUSTCHECK;
/*
 * Another server's, or this one's that the table had lost: ours from now on, and in the table without an owner. SHARE_DONE,
 * SHARE_GONE, SHARE_MOVED: somebody has it.
 */
int sandbox_share_adopt(struct sandbox_share *share, const struct sandbox_record *record, int64_t silent_ms,
	struct share_to to, struct err *err) MUSTCHECK;
/* Is there a record of that life? SHARE_NONE: nowhere. SHARE_THERE: there is, or may be one. */
int sandbox_share_orphan(struct sandbox_share *share, const char *id, const char *uid, int64_t silent_ms,
	struct share_to to, struct err *err) MUSTCHECK;
/* An id that the table does not know. Any process may ask: what has gone meanwhile does not stay in the table. */
int sandbox_share_look(struct sandbox_share *share, const char *tenant, const char *id, struct share_to to,
	struct err *err) MUSTCHECK;
/*
 * The process that hears all changes, in their order: reads that one anew. uid: the life that is forgotten if Redis has
 * another or none, and did not just lose it; "" forgets nothing.
 */
int sandbox_share_refresh(struct sandbox_share *share, const char *id, const char *uid, struct share_to to,
	struct err *err) MUSTCHECK;

#endif
