/* redis_rig.h - for tests: a redis-server of one's own, and loops that end. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_REDIS_RIG_H
#define ORCHARD_TESTS_REDIS_RIG_H

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct redis;

struct rig_server {
	char dir[64];
	char url[128]; /* of its unix socket */
	pid_t pid;
};

/* The N of N.x.y of the redis-server that is installed; 0: there is none. */
int rig_major_version(void);
/* Nothing on disk, no TCP port unless arguments say so (NULL: none, else a NULL-ended list). False: no redis-server here. */
bool rig_server_start(struct rig_server *server, const char *const *arguments);
void rig_server_kill(struct rig_server *server);
/* Again in the same place, empty. */
void rig_server_restart(struct rig_server *server);
void rig_server_stop(struct rig_server *server); /* and its directory */

/* Turns the loop until *flag; fails the test when that does not come. */
void rig_until(struct event_base *base, const bool *flag);
/* Until *count is at least that. */
void rig_until_count(struct event_base *base, const unsigned *count, unsigned at_least);

/* Until the client says this of why it is down. */
void rig_until_problem(struct event_base *base, const struct redis *redis, const char *words);

#endif
