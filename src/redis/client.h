/*
 * client.h - one pipelined connection to Redis on an event loop.
 *
 * It connects by itself, and again with growing, jittered pauses. Commands go out in the order they were given,
 * many at a time; each has a deadline of its own, and its answer is never taken for another's. While the connection is
 * down, commands are refused at once instead of waiting for it. "Down" is also a Redis that is a replica, loads, takes no
 * writes (its memory is full, it can't save), or has said nothing for too long. What waits here is bounded.
 *
 * Callbacks come from the loop, never from inside redis_send() or redis_run(); inside one everything may be called.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_CLIENT_H
#define ORCHARD_REDIS_CLIENT_H

#include "redis/answer.h"
#include "redis/args.h"

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct redis;
struct redis_url;

enum { REDIS_IDENTITY_SIZE = 96 };

struct redis_options {
	const struct redis_url *url; /* borrowed as long as the client */
	const char *name; /* how this connection is called in CLIENT LIST; NULL: none */
	/*
	 * A key that is written on each connection before it is up, and gone a second later; borrowed as long as the client.
	 * NULL: whether this Redis takes writes shows with the first one.
	 */
	const char *probe;
	uint32_t connect_ms; /* for a name, a connection and its greeting, together; 0: 3000 */
	uint32_t silence_ms; /* a connection that owes an answer and says nothing for so long is dead; 0: 3000 */
	uint32_t max_commands; /* waiting for an answer, those that were given up included; 0: 16384 */
	size_t max_bytes; /* not sent yet; 0: 64 MiB */
};

/* Starts to connect. Never NULL. */
struct redis *redis_new(struct event_base *base, const struct redis_options *options);
/* No callback comes any more. What was given before still goes out, as far as the socket takes it at once. */
void redis_free(struct redis *redis);
bool redis_is_up(const struct redis *redis);
/*
 * Which data this connection is to: another text, and what was written last may be lost. By run_id and master_replid of
 * INFO; "": not told, or no probe. Good while it is up.
 */
const char *redis_identity(const struct redis *redis);
/* Why it is down, for people; "" while it is up. Never with a password in it. */
const char *redis_problem(const struct redis *redis);

/*
 * It is up, but has answered a script with errors for some times in a row, lately: why, for people; else "". That is a
 * mistake in how it was set up, such as a user without rights.
 */
const char *redis_refusal(const struct redis *redis);

/*
 * Told after each change of redis_is_up(), and of nothing before the first. When it goes down, every command in
 * flight has been told REDIS_LOST before.
 */
typedef void redis_change_fn(void *ctx, bool up);
void redis_on_change(struct redis *redis, redis_change_fn *fn, void *ctx);

/* Called once for each command that was taken, unless forgotten. */
typedef void redis_reply_fn(void *ctx, const struct redis_answer *answer);

struct redis_reply_to {
	redis_reply_fn *fn; /* NULL: nobody wants to know */
	void *ctx;
	uint32_t
		deadline_ms; /* for blocking commands more than they block; 0 is none: only the connection's end ends it */
};

/*
 * Takes a command; its bytes are copied. -1, nothing sent and nothing called: ERR_UNAVAILABLE (down), or ERR_BUSY (too
 * much waits).
 */
int
redis_send(struct redis *redis, const struct redis_args *args, struct redis_reply_to to, struct err *err) MUSTCHECK;

/* A Lua script with its number of keys; a constant, whose address is its identity. */
struct redis_script {
	const char *text;
	uint32_t keys;
};
/*
 * The same for a script: the first words of args are its keys, the others its arguments. Sent whole once per
 * connection, then by its digest; if Redis has lost it, it is sent whole again, and comes after what was sent meanwhile.
 */
int redis_run(struct redis *redis, const struct redis_script *script, const struct redis_args *args,
	struct redis_reply_to to, struct err *err) MUSTCHECK;

/* Commands with that ctx go on, but their callbacks are never called: for whoever is freed. */
void redis_forget(struct redis *redis, const void *ctx);

struct redis_stats {
	uint64_t commands; /* taken */
	uint64_t refused; /* not taken: down or full */
	uint64_t late, lost;
	uint64_t errors; /* answers that were errors */
	uint64_t connects; /* times it came up */
	uint64_t answered; /* and the time they took, all together: */
	uint64_t answer_us;
	uint32_t waiting; /* for an answer, now */
};
void redis_stats(const struct redis *redis, struct redis_stats *ret_stats);

#endif
