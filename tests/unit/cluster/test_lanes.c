/*
 * test_lanes.c - three servers, each with tables of its own, and one lane; a real Redis.
 *
 * The test plays what surrounds the lanes: each server's queue, the reaper that reads the stream, the agent that sees
 * who is inside.
 */
/* SPDX-License-Identifier: MIT */
#include "cluster/lanes.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "ipc/exec_lock.h"
#include "ipc/notify.h"
#include "ipc/shm.h"
#include "redis/client.h"
#include "redis/url.h"
#include "redis_server.h"

#include <event2/event.h>
#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SERVERS = 3, COMMANDS = 256, PATIENCE_MS = 60000, LONG_MS = 60000, SHORT_MS = 400 };

static const struct exec_lock_limits limits = { .running = COMMANDS, .per_sandbox = COMMANDS };

struct server {
	char name[2];
	char dir[64];
	struct shm *shm;
	struct notify *notify;
	struct redis *redis;
	struct lanes *lanes;
	bool deaf; /* does not read the stream */
	bool dead; /* does nothing any more */
};

struct command {
	struct server *server;
	struct exec_ticket ticket;
	struct lane_pass pass;
	bool has_place, granted, inside, over;
	uint64_t fence;
	unsigned order; /* of entering; 0: not yet */
};

static struct event_base *base;
static struct rig_server redis_server;
static struct redis_url url;
static redisContext *reader;
static char last_seen[64];
static struct server servers[SERVERS];
static struct command commands[COMMANDS];
static unsigned made, entered, inside;
static uint64_t newest_fence;

/* --- servers --- */

static void
start_server(int i, uint32_t lease_ms)
{
	struct server *server = &servers[i];
	const struct shm_sizes sizes = { .sandboxes = 2, .jobs = COMMANDS, .records = 16, .keys = 16, .lanes = 8 };
	char path[96];
	bool adopted;
	struct err err;

	*server = (struct server){ .name = { (char)('A' + i), '\0' } };
	snprintf(server->dir, sizeof server->dir, "/tmp/orchard-lanes-XXXXXX");
	assert_non_null(mkdtemp(server->dir));
	snprintf(path, sizeof path, "%s/shm", server->dir);
	assert_int_equal(shm_open_or_create(path, &sizes, &server->shm, &adopted, &err), 0);
	assert_int_equal(notify_open(shm_notify(server->shm), &server->notify, &err), 0);
	server->redis = redis_new(base, &(struct redis_options){ .url = &url });
	server->lanes = lanes_new(&(struct lanes_options){
		.base = base,
		.redis = server->redis,
		.table = shm_lanes(server->shm),
		.lock = shm_exec_lock(server->shm),
		.notify = server->notify,
		.prefix = "test:",
		.replica = server->name,
		.lease_ms = lease_ms,
	});
}

static void
stop_server(int i)
{
	struct server *server = &servers[i];
	char path[96];

	lanes_free(server->lanes);
	redis_free(server->redis);
	notify_close(server->notify);
	shm_close(server->shm);
	snprintf(path, sizeof path, "%s/shm", server->dir);
	unlink(path);
	rmdir(server->dir);
}

/* --- commands --- */

static void
enter(struct command *command)
{
	if (!lane_pass_enter(&command->pass, &command->fence))
		return;
	command->inside = true;
	command->order = ++entered;
	inside++;
}

static void
on_turn(void *arg)
{
	struct command *command = arg;

	assert_false(command->inside);
	if (!command->server->dead)
		enter(command);
}

static const struct lane_name lane = { .sandbox_uid = "7a3c", .sandbox_slot = 1, .lane = 99 };

static int
try_command(int i, struct command **ret_command, struct err *err)
{
	struct command *command = &commands[made];
	struct server *server = &servers[i];

	assert_true(made < COMMANDS);
	*command = (struct command){ .server = server };
	if (exec_lock_acquire(shm_exec_lock(server->shm), server->notify, &limits, (struct proc_ref){ 0 },
		    lane.sandbox_slot, lane.lane, made, &command->ticket, &command->granted, err) != 0)
		return -1;
	if (lane_pass_join(server->lanes, &command->pass, &lane, on_turn, command, err) != 0) {
		exec_lock_release(shm_exec_lock(server->shm), server->notify, &limits, command->ticket);
		return -1;
	}
	command->has_place = true;
	made++;
	*ret_command = command;
	return 0;
}

static struct command *
new_command(int i)
{
	struct command *command;
	struct err err;

	if (try_command(i, &command, &err) != 0)
		fail_msg("%s", err.msg);
	if (command->granted)
		enter(command);
	return command;
}

static void
take_grants(struct server *server)
{
	struct exec_grant grant;

	while (exec_lock_take(shm_exec_lock(server->shm), (struct proc_ref){ 0 }, &grant, 1) == 1) {
		commands[grant.cookie].granted = true;
		enter(&commands[grant.cookie]);
	}
}

static void
end_command(struct command *command)
{
	struct server *server = command->server;

	if (command->inside)
		inside--;
	command->inside = false;
	command->over = true;
	exec_lock_release(shm_exec_lock(server->shm), server->notify, &limits, command->ticket);
	lane_pass_leave(&command->pass);
	take_grants(server);
}

/* --- the loop --- */

static void
hear(struct server *server, const char *key)
{
	if (server->dead || server->deaf)
		return;
	lanes_heard(server->lanes, key);
	for (unsigned i = 0; i < made; i++)
		if (commands[i].server == server && !commands[i].over)
			lane_pass_hint(&commands[i].pass);
}

static void
read_stream(void)
{
	redisReply *reply = redisCommand(reader, "XREAD COUNT 100 STREAMS test:changes %s", last_seen);
	const redisReply *entries;

	assert_non_null(reply);
	/* [[key, [[id, fields]...]]], or nil */
	entries = reply->type == REDIS_REPLY_ARRAY ? reply->element[0]->element[1] : NULL;
	for (size_t i = 0; entries != NULL && i < entries->elements; i++) {
		const redisReply *fields = entries->element[i]->element[1];

		snprintf(last_seen, sizeof last_seen, "%s", entries->element[i]->element[0]->str);
		assert_string_equal(fields->element[0]->str, "kind");
		assert_string_equal(fields->element[1]->str, "lane");
		for (int k = 0; k < SERVERS; k++)
			if (strcmp(fields->element[5]->str, servers[k].name) == 0)
				hear(&servers[k], fields->element[3]->str);
	}
	freeReplyObject(reply);
}

static void
turn(void)
{
	struct timeval soon = { .tv_usec = 2000 };

	event_base_loopexit(base, &soon);
	event_base_dispatch(base);
	if (reader != NULL)
		read_stream();
}

/* Until the condition holds; the test fails when it does not for long. */
#define UNTIL(condition)                                                                                           \
	do {                                                                                                       \
		int64_t until_ms = clock_boot_ms() + PATIENCE_MS;                                                  \
		while (!(condition)) {                                                                             \
			if (clock_boot_ms() > until_ms)                                                            \
				fail_msg("in vain: %s", #condition);                                               \
			turn();                                                                                    \
		}                                                                                                  \
	} while (0)

static int
setup_with(uint32_t lease_ms)
{
	freeReplyObject(redisCommand(reader, "FLUSHALL"));
	snprintf(last_seen, sizeof last_seen, "0-0");
	base = event_base_new();
	made = entered = inside = 0;
	newest_fence = 0;
	for (int i = 0; i < SERVERS; i++) {
		start_server(i, lease_ms);
		UNTIL(redis_is_up(servers[i].redis));
	}
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	return setup_with(LONG_MS);
}

static int
setup_short(void **state)
{
	(void)state;
	return setup_with(SHORT_MS);
}

static int
teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < made; i++)
		if (!commands[i].over)
			end_command(&commands[i]);
	for (int i = 0; i < SERVERS; i++)
		stop_server(i);
	event_base_free(base);
	return 0;
}

static uint64_t
asked(int i)
{
	struct redis_stats stats;

	redis_stats(servers[i].redis, &stats);
	return stats.commands;
}

/* --- tests --- */

static void
test_unshared_lane_asks_once(void **state)
{
	uint64_t before = asked(0), fence = 0;
	struct command *command;

	(void)state;
	for (int i = 0; i < 50; i++) {
		command = new_command(0);
		UNTIL(command->inside);
		assert_true(command->fence > fence);
		fence = command->fence;
		end_command(command);
	}
	assert_int_equal(asked(0) - before, 1);
}

static void
test_idle_holder_hands_over_at_once(void **state)
{
	struct command *a = new_command(0), *b, *again;

	(void)state;
	UNTIL(a->inside);
	end_command(a);
	b = new_command(1);
	UNTIL(b->inside);
	assert_true(b->fence > a->fence);
	/* And back. */
	again = new_command(0);
	turn();
	assert_false(again->inside);
	end_command(b);
	UNTIL(again->inside);
	assert_true(again->fence > b->fence);
}

static void
test_waits_for_the_one_inside(void **state)
{
	struct command *a = new_command(0), *b;

	(void)state;
	UNTIL(a->inside);
	b = new_command(1);
	for (int i = 0; i < 50; i++)
		turn();
	assert_false(b->inside);
	end_command(a);
	UNTIL(b->inside);
}

static bool
nobody_uses(void *arg, const struct lane_record *record)
{
	(void)arg;
	(void)record;
	return true;
}

/* With other lanes, as if nobody used those that were there. */
static void
fill_table(int i)
{
	struct lane_forgetting all = { .is_idle = nobody_uses };
	static unsigned n;
	uint32_t slot;
	struct err err;

	for (int k = 0; k < 20; k++) {
		struct lane_record record = { .sandbox_slot = 1 };

		snprintf(record.key, sizeof record.key, "other:%u", n++);
		assert_int_equal(lane_table_enter(shm_lanes(servers[i].shm), &record, &all, &slot, &err), 0);
	}
}

static bool
waits_in_redis(const struct command *command)
{
	return command->pass.ask == NULL;
}

/* The order over all servers is that of arrival, once anybody waits. */
static void
test_first_come_first_served(void **state)
{
	const char *arrivals = "011202100212010221";
	struct command *first = new_command(0), *waiting[32];
	unsigned n = 0;

	(void)state;
	UNTIL(first->inside);
	for (const char *p = arrivals; *p != '\0'; p++) {
		waiting[n] = new_command(*p - '0');
		UNTIL(waits_in_redis(waiting[n]));
		n++;
	}
	end_command(first);
	for (unsigned i = 0; i < n; i++) {
		UNTIL(inside == 1);
		if (!waiting[i]->inside)
			fail_msg("command %u was overtaken", i);
		assert_true(waiting[i]->fence > newest_fence);
		newest_fence = waiting[i]->fence;
		end_command(waiting[i]);
	}
}

/* Commands come and go as they like; never are two inside, fences grow, and all get through. */
static void
test_crowd(void **state)
{
	unsigned over = 0, seed = 7;

	(void)state;
	while (over < 200) {
		seed = seed * 1103515245 + 12345;
		if (made < 200 && (seed >> 16) % 4 != 0)
			new_command((int)((seed >> 20) % SERVERS));
		turn();
		assert_true(inside <= 1);
		for (unsigned i = 0; i < made; i++) {
			struct command *command = &commands[i];

			if (command->over)
				continue;
			if (command->inside) {
				assert_true(command->fence > newest_fence);
				newest_fence = command->fence;
			}
			/* Some change their mind. */
			if (command->inside || (seed >> 8) % 97 == i % 97) {
				end_command(command);
				over++;
				break;
			}
		}
	}
}

/* Without the stream it takes longer, no more. */
static void
test_lost_messages(void **state)
{
	struct command *a, *b;

	(void)state;
	for (int i = 0; i < SERVERS; i++)
		servers[i].deaf = true;
	a = new_command(0);
	UNTIL(a->inside);
	b = new_command(1);
	turn();
	assert_false(b->inside);
	end_command(a);
	UNTIL(b->inside);
	assert_true(b->fence > a->fence);
}

static void
test_dead_holder(void **state)
{
	struct command *a = new_command(0), *b;

	(void)state;
	UNTIL(a->inside);
	servers[0].dead = true;
	a->pass.inside = false; /* nobody renews it */
	b = new_command(1);
	UNTIL(b->inside);
	assert_true(b->fence > a->fence);
}

static int64_t
lease_end(const struct command *command)
{
	struct lane_record record;

	assert_true(lane_table_read(shm_lanes(command->server->shm), command->pass.ref.slot, &record));
	return record.until_ms;
}

/* While a command is inside, its lease is renewed before it ends, under the same number. */
static void
test_renewed(void **state)
{
	struct command *a = new_command(0), *b;
	uint64_t fence;
	int64_t first;

	(void)state;
	UNTIL(a->inside);
	first = lease_end(a);
	UNTIL(lease_end(a) > first);
	fence = a->fence;
	end_command(a);
	b = new_command(0);
	UNTIL(b->inside);
	assert_true(b->fence > fence);
}

static void
test_overtaken(void **state)
{
	struct command *a = new_command(0);
	uint64_t newest;

	(void)state;
	UNTIL(a->inside);
	newest = a->fence + (UINT64_C(1000) << 21);
	inside--;
	a->inside = false;
	lane_pass_overtaken(&a->pass, newest);
	enter(a);
	UNTIL(a->inside);
	assert_true(a->fence > newest);
}

static void
test_flushed(void **state)
{
	struct command *a = new_command(0), *b;

	(void)state;
	UNTIL(a->inside);
	lane_pass_overtaken(&a->pass, a->fence + (UINT64_C(1000) << 21));
	inside--;
	a->inside = false;
	enter(a);
	UNTIL(a->inside);
	end_command(a);
	freeReplyObject(redisCommand(reader, "FLUSHALL"));
	snprintf(last_seen, sizeof last_seen, "0-0");
	/* Another server knows nothing of that number; the agent would tell it. */
	b = new_command(1);
	UNTIL(b->inside);
	end_command(b);
	b = new_command(0);
	UNTIL(b->inside);
	assert_true(b->fence > a->fence);
}

/* The table is full of other lanes, and the waiting one's record is gone: it gets its turn, and asks as often as ever. */
static void
test_forgotten(void **state)
{
	struct command *a = new_command(0), *b;
	uint64_t before;

	(void)state;
	UNTIL(a->inside);
	b = new_command(1);
	UNTIL(waits_in_redis(b));
	fill_table(1);
	before = asked(1);
	end_command(a);
	UNTIL(b->inside);
	assert_true(asked(1) - before < 10);
	/* What an agent has said is kept as well. */
	fill_table(1);
	lane_pass_overtaken(&b->pass, b->fence + (UINT64_C(1000) << 21));
	b->inside = false;
	inside--;
	before = b->fence;
	enter(b);
	UNTIL(b->inside);
	assert_true(b->fence > before + (UINT64_C(1000) << 21));
}

static long long
queue_length(void)
{
	redisReply *reply = redisCommand(reader, "LLEN test:lane:%s:queue", commands[0].pass.ref.key);
	long long length = reply->integer;

	assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
	freeReplyObject(reply);
	return length;
}

/* Who changes his mind leaves nothing behind: no place in Redis, and no turn that another command of his server gets. */
static void
test_places_are_given_back(void **state)
{
	struct command *a = new_command(0), *waiting[20], *b, *c;

	(void)state;
	UNTIL(a->inside);
	for (int i = 0; i < 20; i++)
		waiting[i] = new_command(1);
	UNTIL(queue_length() == 20);
	for (int i = 19; i >= 0; i--)
		end_command(waiting[i]);
	UNTIL(queue_length() == 0);
	for (int i = 0; i < 3; i++)
		waiting[i] = new_command(1);
	UNTIL(queue_length() == 3);
	end_command(a);
	UNTIL(waiting[0]->inside);
	/* Two turns are left at that server: one whose command goes away, and one. */
	end_command(waiting[2]);
	c = new_command(2);
	UNTIL(waits_in_redis(c));
	b = new_command(1);
	UNTIL(waits_in_redis(b));
	end_command(waiting[0]);
	UNTIL(waiting[1]->inside);
	end_command(waiting[1]);
	UNTIL(inside == 1);
	assert_true(c->inside);
	end_command(c);
	UNTIL(b->inside);
}

static void
spoil(bool spoiled)
{
	if (spoiled)
		freeReplyObject(redisCommand(reader, "SET test:lane:%s spoiled", commands[0].pass.ref.key));
	else
		freeReplyObject(redisCommand(reader, "DEL test:lane:%s", commands[0].pass.ref.key));
}

/* A Redis that answers with errors is as good as none: the last holder goes on, others are told, until it serves. */
static void
test_refused(void **state)
{
	struct command *a = new_command(0), *b, *c;
	struct err err;

	(void)state;
	UNTIL(a->inside);
	end_command(a);
	spoil(true);
	b = new_command(1);
	UNTIL(try_command(1, &c, &err) != 0);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_false(b->inside);
	c = new_command(0);
	UNTIL(c->inside);
	end_command(c);
	spoil(false);
	UNTIL(b->inside);
	c = new_command(1);
	assert_false(c->inside);
}

static void
test_nonsense_in_the_stream(void **state)
{
	char longest[6000];
	uint64_t before = asked(0);

	(void)state;
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	lanes_heard(servers[0].lanes, longest);
	longest[3] = ':';
	lanes_heard(servers[0].lanes, longest);
	lanes_heard(servers[0].lanes, "");
	lanes_heard(servers[0].lanes, ":0123456789abcdef");
	lanes_heard(servers[0].lanes, "7a3c:0123456789abcdeX");
	lanes_heard(servers[0].lanes, "7a3c:0123456789abcdef0");
	assert_int_equal(asked(0), before);
	lanes_heard(servers[0].lanes, "7a3c:0123456789abcdef");
	assert_int_equal(asked(0), before + 1);
}

static void
test_away(void **state)
{
	struct command *a = new_command(0), *b, *c;
	struct err err;

	(void)state;
	UNTIL(a->inside);
	end_command(a);
	redisFree(reader);
	reader = NULL;
	rig_server_stop(&redis_server);
	for (int i = 0; i < SERVERS; i++)
		UNTIL(!redis_is_up(servers[i].redis));
	/* The last holder goes on, whoever else does not. */
	b = new_command(0);
	assert_true(b->inside);
	assert_true(b->fence > a->fence);
	assert_int_equal(try_command(1, &c, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	end_command(b);
}

static int
start(void **state)
{
	struct err err;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	log_init("test", LOG_LEVEL_ERROR);
	redis_server_start(&redis_server);
	reader = redis_server_connect(&redis_server);
	assert_int_equal(redis_url_parse(redis_server.url, &url, &err), 0);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	if (reader == NULL)
		return 0;
	redisFree(reader);
	rig_server_stop(&redis_server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unshared_lane_asks_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_holder_hands_over_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits_for_the_one_inside, setup, teardown),
		cmocka_unit_test_setup_teardown(test_first_come_first_served, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lost_messages, setup_short, teardown),
		cmocka_unit_test_setup_teardown(test_dead_holder, setup_short, teardown),
		cmocka_unit_test_setup_teardown(test_renewed, setup_short, teardown),
		cmocka_unit_test_setup_teardown(test_overtaken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flushed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_forgotten, setup, teardown),
		cmocka_unit_test_setup_teardown(test_places_are_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup_short, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense_in_the_stream, setup, teardown),
		cmocka_unit_test_setup_teardown(test_away, setup, teardown),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
