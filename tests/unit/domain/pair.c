/* pair.c - two servers with one sandbox at a real Redis, driven by turns; the test reads the stream of changes for both. */
/* SPDX-License-Identifier: MIT */
#include "pair.h"
#include "base/err.h"
#include "domain/service_priv.h"
#include "ipc/shm.h"
#include "redis/url.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const char *const pair_names[PAIR_SERVERS] = { "aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa",
	"bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb" };
struct rig_server pair_redis;
static struct redis_url url;
redisContext *pair_reader;
static char last_seen[64];
struct fixture *pair_fixtures[PAIR_SERVERS];
struct redis *pair_clients[PAIR_SERVERS];
bool pair_deaf;
struct service_share pair_shares[PAIR_SERVERS];

static void
on_change(void *ctx, bool up)
{
	struct fixture *f = ctx;

	service_on_redis(f->services[0], up);
}

/* --- the loop --- */

static const char *
field(redisReply *fields, const char *name)
{
	for (size_t i = 0; i + 1 < fields->elements; i += 2)
		if (strcmp(fields->element[i]->str, name) == 0)
			return fields->element[i + 1]->str;
	return "";
}

static void
hear(redisReply *fields)
{
	for (int i = 0; i < PAIR_SERVERS && !pair_deaf; i++)
		if (strcmp(field(fields, "kind"), "lane") == 0)
			service_heard_lane(pair_fixtures[i]->services[0], field(fields, "id"), field(fields, "to"));
		else if (strcmp(field(fields, "kind"), "claim") == 0)
			service_heard_claim(
				pair_fixtures[i]->services[0], field(fields, "id"), field(fields, "to"));
		else
			service_heard_job(pair_fixtures[i]->services[0], field(fields, "id"), field(fields, "to"));
}

static void
read_stream(void)
{
	redisReply *reply = redisCommand(pair_reader, "XRANGE test:changes (%s + COUNT 100", last_seen);

	assert_non_null(reply);
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
		snprintf(last_seen, sizeof last_seen, "%s", reply->element[i]->element[0]->str);
		hear(reply->element[i]->element[1]);
	}
	freeReplyObject(reply);
}

/* Both servers. The fixture's clock stands still, so patience is counted in turns. */
void
pair_turn(bool redis_answers)
{
	struct timeval soon = { .tv_usec = 2000 };

	for (int i = 0; i < PAIR_SERVERS; i++) {
		event_base_loopexit(pair_fixtures[i]->base, &soon);
		event_base_dispatch(pair_fixtures[i]->base);
	}
	if (redis_answers)
		read_stream();
}

bool
pair_is_idle(const struct service *service)
{
	return service_execs(service) == 0 && service_busy(service) == 0;
}

/* --- set up --- */

static void
share(int i)
{
	struct fixture *f = pair_fixtures[i];

	pair_clients[i] = redis_new(f->base, &(struct redis_options){ .url = &url, .silence_ms = 1500 });
	pair_shares[i] = (struct service_share){
		.redis = pair_clients[i], .prefix = "test:", .replica = pair_names[i]
	};
	service_share_begin(f->services[0], &pair_shares[i]);
	redis_on_change(pair_clients[i], on_change, f);
	UNTIL(redis_is_up(pair_clients[i]));
}

/* The second server knows the first one's sandbox. */
static void
mirror(const char *id)
{
	struct sandbox_record record;
	uint32_t slot;
	struct err err;

	assert_true(sandbox_table_find(shm_sandboxes(pair_fixtures[0]->shm), id, &record, &slot));
	assert_int_equal(sandbox_table_insert(shm_sandboxes(pair_fixtures[1]->shm), &record, &slot, &err), 0);
}

int
pair_setup(void **state)
{
	struct sandbox_record record;

	(void)state;
	freeReplyObject(redisCommand(pair_reader, "FLUSHALL"));
	snprintf(last_seen, sizeof last_seen, "0-0");
	pair_deaf = false;
	for (int i = 0; i < PAIR_SERVERS; i++) {
		void *made;

		fixture_setup(&made);
		pair_fixtures[i] = made;
		pair_fixtures[i]->config.exec_queue_limit = 32;
		pair_fixtures[i]->config.redis_replica_seconds = 15;
		pair_fixtures[i]->config.redis_output_bytes = 65536;
	}
	make_sandbox(pair_fixtures[0], "a", &record);
	for (int i = 0; i < PAIR_SERVERS; i++)
		share(i);
	mirror("a");
	return 0;
}

int
pair_teardown(void **state)
{
	(void)state;
	for (int i = 0; i < PAIR_SERVERS; i++) {
		void *made = pair_fixtures[i];

		service_free(pair_fixtures[i]->services[0]);
		pair_fixtures[i]->services[0] = NULL;
		redis_free(pair_clients[i]);
		fixture_teardown(&made);
	}
	return 0;
}

void
pair_start(int server, struct outcome *ret)
{
	submit(pair_fixtures[server], 0, "a", PAIR_COMMAND, ret, NULL);
}

void
pair_wait(int server, const char *job_id, struct outcome *ret)
{
	struct job_wait *wait;

	*ret = (struct outcome){ 0 };
	job_wait_start(pair_fixtures[server]->services[0], "t", job_id, 60000, on_job, ret, &wait);
}

struct service *
pair_server(int i)
{
	return pair_fixtures[i]->services[0];
}

void
pair_turns(int count)
{
	while (count-- > 0)
		pair_turn(true);
}

void
pair_hold(struct outcome *job)
{
	int jobs = pair_fixtures[0]->job_count;

	pair_fixtures[0]->next = FAKE_HOLD;
	pair_start(0, job);
	UNTIL(job->done && pair_fixtures[0]->job_count == jobs + 1);
	assert_string_equal(job->message, "");
}

int
pair_start_redis(void **state)
{
	struct err err;

	(void)state;
	redis_server_start(&pair_redis);
	pair_reader = redis_server_connect(&pair_redis);
	assert_int_equal(redis_url_parse(pair_redis.url, &url, &err), 0);
	return 0;
}

int
pair_stop_redis(void **state)
{
	(void)state;
	kill(pair_redis.pid, SIGCONT);
	redisFree(pair_reader);
	rig_server_stop(&pair_redis);
	return 0;
}
