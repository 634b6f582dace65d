/* redis_server.c - see redis_server.h. */
/* SPDX-License-Identifier: MIT */
#include "redis_server.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void
redis_server_start(struct rig_server *server)
{
	if (!rig_server_start(server, NULL))
		fail_msg("there is no redis-server here: apt-get install redis-server");
}

struct redisContext *
redis_server_connect(const struct rig_server *server)
{
	redisContext *redis = redisConnectUnix(server->url + strlen("unix://"));

	assert_non_null(redis);
	assert_int_equal(redis->err, 0);
	return redis;
}
