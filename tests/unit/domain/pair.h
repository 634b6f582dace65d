/*
 * pair.h - two servers and one sandbox, "a", at a real Redis.
 *
 * Each server is a fixture of its own; the second knows the first one's sandbox and agent. What comes down the stream of
 * changes is told to both, as their reapers would. The fixture's clock stands still, so patience is counted in turns.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_DOMAIN_PAIR_H
#define ORCHARD_TESTS_DOMAIN_PAIR_H

#include "fakes.h"
#include "fixture.h"
#include "domain/service.h"
#include "redis/client.h"
#include "redis_server.h"

#include <stdbool.h>

#define PAIR_COMMAND "{\"command\":\"x\",\"wait\":false}"

enum { PAIR_SERVERS = 2, PAIR_PATIENCE = 5000 };

struct redisContext;

extern const char *const pair_names[PAIR_SERVERS];
extern struct rig_server pair_redis;
extern struct redisContext *pair_reader; /* for the test's own questions */
extern struct fixture *pair_fixtures[PAIR_SERVERS];
extern struct redis *pair_clients[PAIR_SERVERS];
extern struct service_share pair_shares[PAIR_SERVERS];
extern bool pair_deaf; /* nothing is heard of changes */

int pair_start_redis(void **state);
int pair_stop_redis(void **state);
int pair_setup(void **state);
int pair_teardown(void **state);
bool pair_is_idle(const struct service *service);
struct service *pair_server(int i);
void pair_turn(bool redis_answers);
void pair_turns(int count);
void pair_start(int server, struct outcome *ret); /* PAIR_COMMAND */
void pair_hold(struct outcome *job); /* the same at the first server; it runs until fake_end() */
void pair_wait(int server, const char *job_id, struct outcome *ret);

#define UNTIL_WITH(condition, redis_answers)                                                                       \
	do {                                                                                                       \
		int left = PAIR_PATIENCE;                                                                          \
		while (!(condition)) {                                                                             \
			if (left-- == 0)                                                                           \
				fail_msg("in vain: %s", #condition);                                               \
			pair_turn(redis_answers);                                                                  \
		}                                                                                                  \
	} while (0)
#define UNTIL(condition) UNTIL_WITH(condition, true)

#endif
