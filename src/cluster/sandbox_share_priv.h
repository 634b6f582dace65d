/*
 * sandbox_share_priv.h - a call on its way, between sandbox_share.c, which sends it, and sandbox_answer.c, which knows what its
 * answer means.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_SANDBOX_SHARE_PRIV_H
#define ORCHARD_CLUSTER_SANDBOX_SHARE_PRIV_H

#include "cluster/sandbox_share.h"
#include "cluster/shared_return.h"

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct redis_answer;

enum share_kind {
	CALL_PLAIN,
	CALL_CREATE,
	CALL_PATCH,
	CALL_DELETE,
	CALL_LOOK,
	CALL_VERIFY,
	CALL_REFRESH,
	CALL_ADOPT
};

struct share_call {
	LIST_ENTRY(share_call) link;
	struct sandbox_share *share;
	enum share_kind kind;
	struct share_to to;
	char tenant[SANDBOX_TENANT_SIZE];
	char id[SANDBOX_ID_SIZE];
	char uid[ID_UUID_SIZE];
	char home[ID_UUID_SIZE]; /* CALL_VERIFY: by the record that is verified */
	bool creates; /* CALL_VERIFY: of what a create has found in its place */
	bool waits; /* CALL_VERIFY: for Redis to be back */
	uint32_t tries; /* CALL_VERIFY: answers that never came */
};
LIST_HEAD(share_calls, share_call);

enum { SHARE_FINISHED = 256 };

struct sandbox_share {
	struct sandbox_share_options options;
	struct sandbox_mirror mirror;
	struct shared_clock clock;
	bool clock_known;
	struct shared_return back;
	/* Lives that this process has told the end of, the last ones: an older copy of Redis may know them again. */
	char finished[SHARE_FINISHED][ID_UUID_SIZE];
	uint32_t finished_count; /* ever */
	struct share_calls calls;
};

/* Of every call: frees it, or sends it on. */
void share_on_answer(void *ctx, const struct redis_answer *answer);
void share_learn_time(struct sandbox_share *share, int64_t now_ms);
/* Looks once more whether that life, which a look has just put into the table, is still there. */
void share_verify(struct share_call *call);
void share_call_end(struct share_call *call, const struct share_answer *answer, const struct err *why);

#endif
