/* redis_server.h - the rig's redis-server, and a connection for a test's own questions. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_CLUSTER_REDIS_SERVER_H
#define ORCHARD_TESTS_CLUSTER_REDIS_SERVER_H

#include "redis_rig.h"

struct redisContext;

/* Fails the test when there is none on this machine. */
void redis_server_start(struct rig_server *server);
/* redisFree() it. */
struct redisContext *redis_server_connect(const struct rig_server *server);

#endif
