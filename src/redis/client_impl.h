/*
 * client_impl.h - the inside of a client: its commands in the order of their answers, and its connection.
 *
 * client.c holds commands and tells what became of them, connect.c makes connections and ends them, greet.c makes sure
 * who answers, lookup.c finds addresses, script.c sends scripts.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_CLIENT_IMPL_H
#define ORCHARD_REDIS_CLIENT_IMPL_H

#include "redis/client.h"
#include "redis/script.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

struct bufferevent;
struct evbuffer;
struct redisReader;
struct redis_lookup;

enum redis_state { REDIS_DOWN, REDIS_CONNECTING, REDIS_GREETING, REDIS_UP };

struct redis_command {
	STAILQ_ENTRY(redis_command) entry;
	struct redis *redis;
	struct redis_reply_to to; /* fn is NULL when nobody wants the answer (any more) */
	bool given_up; /* its deadline has passed */
	struct event deadline; /* pending until then */
	int64_t sent_us;
	const struct redis_script *script; /* NULL: it is none */
	struct redis_retry retry;
};
STAILQ_HEAD(redis_commands, redis_command);

struct redis {
	struct event_base *base;
	struct redis_options options;
	char *name;
	enum redis_state state;
	struct bufferevent *bev;
	struct redisReader *reader;
	struct redis_lookup *lookup;
	struct event *retry; /* when to connect again */
	struct event *watch; /* over how long it takes to connect, then over silence */
	uint32_t tries; /* in a row that brought no lasting connection */
	int64_t up_ms, input_ms; /* since when it is up, and when something came last */
	struct redis_commands commands; /* the oldest first, as their answers come */
	struct redis_script_notes scripts;
	struct redis_stats stats; /* stats.connects numbers the connection */
	redis_change_fn *on_change;
	void *change_ctx;
	uint32_t depth; /* callbacks of users that run now */
	bool freed; /* by one of them */
	char identity[REDIS_IDENTITY_SIZE];
	char problem[256];
	char refusal[256]; /* the last error of a script that is refused */
	int64_t refusal_ms; /* when it came; 0: never */
};

/* client.c */
struct evbuffer *redis_output(const struct redis *redis);
void redis_put_word(struct evbuffer *out, const void *data, size_t size);
/* ERR_UNAVAILABLE, ERR_BUSY; size as it will be sent. */
int redis_admit(struct redis *redis, size_t size, struct err *err) MUSTCHECK;
struct redis_command *redis_expect(struct redis *redis, struct redis_reply_to to);
/* Without admission: for a connection that isn't up yet. */
void redis_put(struct redis *redis, const struct redis_args *args, struct redis_reply_to to);
/* Each command in flight is told that its answer is lost. */
void redis_lose_all(struct redis *redis);
void redis_on_answer(struct redis *redis, const struct redis_answer *answer);
void redis_tell_change(struct redis *redis, bool up);
/* Frees what redis_free() left because a callback ran. */
void redis_leave(struct redis *redis);

/* connect.c */
void redis_connect_start(struct redis *redis);
void redis_down(struct redis *redis, const char *format, ...) __attribute__((format(printf, 2, 3)));
void redis_up(struct redis *redis);
void redis_connect_stop(struct redis *redis);

/* greet.c */
void redis_greet(struct redis *redis);

#endif
