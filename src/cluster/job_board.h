/*
 * job_board.h - what other servers are told of jobs, and asked about them.
 *
 * A live job's record is written anew by whoever drives it, as it changes; nobody depends on it being the newest. An
 * end is told until Redis has it: what can't be told waits here, up to a bound. One board per process.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CLUSTER_JOB_BOARD_H
#define ORCHARD_CLUSTER_JOB_BOARD_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct job_board;
struct redis;
struct redis_answer;

/*
 * What Redis says of a live job of ours besides: its client wants it cancelled; another server has taken it over; Redis
 * knows nothing of it.
 */
enum board_mark { BOARD_CANCEL, BOARD_CLAIMED, BOARD_LOST };

/* All borrowed, as long as the board. */
struct job_board_options {
	struct event_base *base;
	struct redis *redis;
	const char *prefix; /* of keys in Redis */
	const char *replica; /* this server's name among the others */
	uint32_t deadline_ms; /* of an answer; 0: 1500 */
	size_t max_bytes; /* of ends that wait to be told; 0: 32 MiB */
	void (*marked)(void *ctx, const char *job_id, enum board_mark mark); /* from the loop; NULL: nobody cares */
	void *ctx;
};
struct job_board *job_board_new(const struct job_board_options *options);
/* Whoever waits for an answer is told that there is none; ends that wait are dropped, and those nobody hears of. */
void job_board_free(struct job_board *board);
/* Redis can be written to, or not any more: what waits is told. */
void job_board_on_redis(struct job_board *board, bool up);
/* Those with that arg are not told any more; ends are told to Redis all the same. */
void job_board_forget(struct job_board *board, const void *arg);

/* A live job; copied. */
struct board_job {
	const char *id, *tenant, *sandbox_id, *sandbox_uid;
	const char *state; /* "queued" or "running" */
	const char *json; /* as the REST API shows it */
	const char *take; /* JSON: what a server needs to know that takes it over */
	const char *host; /* of its home: its boot id */
	double created_at; /* wall clock */
	int64_t keep_ms; /* without another word */
};
/* told: Redis has it. Never called before the call returns. */
typedef void job_board_told_f(bool told, void *arg);
/* done may be NULL. False: Redis is away, and done is not called. */
bool job_board_put(struct job_board *board, const struct board_job *job, job_board_told_f *done, void *arg);

/* How it ended, sealed for its tenant; copied. */
struct board_end {
	const char *id, *tenant;
	const char *sandbox_uid; /* "": it is listed nowhere */
	const char *json;
	const char *brief; /* as it is listed */
	double created_at;
	int64_t keep_ms;
};
/* Given up for lack of room, or because Redis does not take it: the agent is to be asked again one day. Told before: by this server, or by another one. */
enum board_told { BOARD_GIVEN_UP, BOARD_TOLD, BOARD_TOLD_BEFORE };
typedef void job_board_ended_f(enum board_told told, void *arg);
/* done once Redis has an end of it. May be NULL. */
void job_board_end(struct job_board *board, const struct board_end *end, job_board_ended_f *done, void *arg);
/* Ends that Redis does not have yet, but may take soon: none while it is away or refuses them. */
uint32_t job_board_waiting(const struct job_board *board);
/* Redis takes ends, and has all of them. */
bool job_board_is_idle(const struct job_board *board);
/* The end of that job waits. */
bool job_board_tells(const struct job_board *board, const char *job_id);

/* Borrowed during the callback. */
struct board_answer {
	const char *tenant, *state; /* "queued", "running", "ended" */
	const char *json;
	size_t json_len;
	const char *sandbox_id, *sandbox_uid, *home;
};
/* answer is NULL with the reason: ERR_NOT_FOUND, ERR_UNAVAILABLE (late or away). Never before the call returns. */
typedef void job_board_got_f(const struct board_answer *answer, const struct err *why, void *arg);
/* From then on changes of a live one are told to all. -1: ERR_UNAVAILABLE, and done is not called. */
int job_board_get(
	struct job_board *board, const char *job_id, job_board_got_f *done, void *arg, struct err *err) MUSTCHECK;
/* Asks its home to cancel it. */
void job_board_cancel(struct job_board *board, const char *job_id, const char *tenant);

/* --- job_roll.c: many at once. Rows are flat, as the script says; NULL with the reason. Never before the call returns --- */
typedef void job_board_rows_f(const struct redis_answer *rows, const struct err *why, void *arg);
/* Jobs that other servers know of, the newest first: for each its id and JSON. -1 as job_board_get(). */
struct board_list {
	const char *sandbox_uid, *tenant;
	uint32_t limit;
};
int job_board_list(struct job_board *board, const struct board_list *list, job_board_rows_f *done, void *arg,
	struct err *err) MUSTCHECK;
/* Live jobs of a server: where the next page begins ("0": that was the last), and then BOARD_PAGE_WORDS for each. */
enum { BOARD_PAGE_ID, BOARD_PAGE_TENANT, BOARD_PAGE_SANDBOX, BOARD_PAGE_UID, BOARD_PAGE_HOST, BOARD_PAGE_WORDS };
int job_board_page(struct job_board *board, const char *server, const char *cursor, job_board_rows_f *done,
	void *arg, struct err *err) MUSTCHECK;
/*
 * Makes this server its home, if `server` is that and is silent by Redis' clock. No rows: it is not. Else its cancel
 * mark, `take` and `json` of its board_job. host_ms: nobody can be asked, and no server of its home's host has said
 * anything for so long; 0: its agent can be.
 */
struct board_claim {
	const char *id, *server;
	int64_t gone_ms;
	int64_t host_ms;
};
int job_board_claim(struct job_board *board, const struct board_claim *claim, job_board_rows_f *done, void *arg,
	struct err *err) MUSTCHECK;
/* Asks for the marks of live ones of ours, a number at once; `marked` is told of them. Any that can't be asked are not. */
enum { BOARD_MARKS = 64 };
void job_board_marks(struct job_board *board, size_t count, const char (*ids)[ID_UUID_SIZE]);

#endif
