/* test_server.c - the client with a real redis-server: scripts, logins, databases, deaths, replicas. */
/* SPDX-License-Identifier: MIT */
#include "redis_rig.h"

#include "base/err.h"
#include "redis/client.h"
#include "redis/url.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

struct seen {
	unsigned count, lost, late, errors;
	int64_t number;
	char text[256];
};

struct ctx {
	struct rig_server server;
	struct event_base *base;
	struct redis_url url;
	struct redis *redis;
	unsigned ups, downs;
};

static void
on_change(void *arg, bool up)
{
	struct ctx *ctx = arg;

	ctx->ups += up;
	ctx->downs += !up;
}

static void
on_answer(void *arg, const struct redis_answer *answer)
{
	struct seen *seen = arg;

	seen->count++;
	seen->lost += answer->kind == REDIS_LOST;
	seen->late += answer->kind == REDIS_LATE;
	seen->errors += answer->kind == REDIS_ERROR;
	if (answer->kind == REDIS_INTEGER)
		seen->number = answer->number;
	if (answer->text != NULL)
		snprintf(seen->text, sizeof seen->text, "%s", answer->text);
}

static void
ctx_connect(struct ctx *ctx, const char *url, uint32_t silence_ms)
{
	struct redis_options options = {
		.url = &ctx->url, .name = "test", .probe = "probe", .silence_ms = silence_ms
	};
	struct err err;

	assert_int_equal(redis_url_parse(url, &ctx->url, &err), 0);
	ctx->redis = redis_new(ctx->base, &options);
	redis_on_change(ctx->redis, on_change, ctx);
}

static void
ctx_start(struct ctx *ctx, const char *const *arguments)
{
	*ctx = (struct ctx){ .base = event_base_new() };
	if (!rig_server_start(&ctx->server, arguments))
		skip();
}

static void
ctx_stop(struct ctx *ctx)
{
	redis_free(ctx->redis);
	event_base_loop(ctx->base, EVLOOP_NONBLOCK);
	event_base_free(ctx->base);
	rig_server_stop(&ctx->server);
}

/* The words of a command, as one text. */
static void
words(struct redis_args *args, const char *text)
{
	static char copy[1024];
	char *rest, *word;

	snprintf(copy, sizeof copy, "%s", text);
	redis_args_init(args);
	for (word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
		redis_args_text(args, word);
}

static void
say(struct ctx *ctx, const char *text, struct seen *seen)
{
	struct redis_args args;
	struct err err;

	words(&args, text);
	if (redis_send(ctx->redis, &args, (struct redis_reply_to){ on_answer, seen, 30000 }, &err) != 0)
		fail_msg("%s", err.msg);
}

static void
run(struct ctx *ctx, const struct redis_script *script, const char *text, struct seen *seen)
{
	struct redis_args args;
	struct err err;

	words(&args, text);
	if (redis_run(ctx->redis, script, &args, (struct redis_reply_to){ on_answer, seen, 30000 }, &err) != 0)
		fail_msg("%s", err.msg);
}

static const struct redis_script add_script = { "return redis.call('INCRBY', KEYS[1], ARGV[1])", 1 };

static void
test_scripts_survive_a_flush_of_scripts(void **state)
{
	struct ctx ctx;
	struct seen seen = { 0 }, flushed = { 0 };

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	run(&ctx, &add_script, "k 1", &seen);
	run(&ctx, &add_script, "k 10", &seen);
	say(&ctx, "SCRIPT FLUSH", &flushed);
	run(&ctx, &add_script, "k 100", &seen);
	run(&ctx, &add_script, "k 1000", &seen);
	rig_until_count(ctx.base, &seen.count, 4);
	assert_int_equal(seen.errors, 0);
	assert_int_equal(seen.number, 1111);
	ctx_stop(&ctx);
}

static void
test_thousands_in_flight_keep_their_order(void **state)
{
	enum { COUNT = 10000 };
	static struct seen seen[COUNT];
	struct ctx ctx;
	struct redis_stats stats;

	(void)state;
	memset(seen, 0, sizeof seen);
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	for (int i = 0; i < COUNT; i++)
		say(&ctx, "INCR k", &seen[i]);
	redis_stats(ctx.redis, &stats);
	assert_int_equal(stats.waiting, COUNT);
	rig_until_count(ctx.base, &seen[COUNT - 1].count, 1);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(seen[i].number, i + 1);
	ctx_stop(&ctx);
}

static void
test_a_killed_server_loses_what_is_in_flight(void **state)
{
	struct ctx ctx;
	struct seen seen = { 0 };
	struct redis_args args;
	struct err err;

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	say(&ctx, "BLPOP nothing 0", &seen);
	say(&ctx, "GET k", &seen);
	event_base_loop(ctx.base, EVLOOP_NONBLOCK);
	rig_server_kill(&ctx.server);
	rig_until_count(ctx.base, &ctx.downs, 1);
	assert_int_equal(seen.lost, 2);
	words(&args, "GET k");
	assert_int_equal(redis_send(ctx.redis, &args, (struct redis_reply_to){ 0 }, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	rig_server_restart(&ctx.server);
	rig_until_count(ctx.base, &ctx.ups, 2);
	run(&ctx, &add_script, "k 5", &seen);
	rig_until_count(ctx.base, &seen.count, 3);
	assert_int_equal(seen.number, 5);
	ctx_stop(&ctx);
}

static void
test_a_stopped_server_is_down_in_a_while(void **state)
{
	struct ctx ctx;
	struct seen seen = { 0 };

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 500);
	rig_until_count(ctx.base, &ctx.ups, 1);
	kill(ctx.server.pid, SIGSTOP);
	/* Nobody asks it anything: the client does. */
	rig_until_count(ctx.base, &ctx.downs, 1);
	assert_non_null(strstr(redis_problem(ctx.redis), "not answered"));
	kill(ctx.server.pid, SIGCONT);
	rig_until_count(ctx.base, &ctx.ups, 2);
	say(&ctx, "INCR k", &seen);
	rig_until_count(ctx.base, &seen.count, 1);
	assert_int_equal(seen.number, 1);
	ctx_stop(&ctx);
}

static void
test_where_nobody_listens_is_told_by_the_kernels_word(void **state)
{
	static const struct {
		const char *url, *problem;
	} places[] = { { "unix:///nowhere/redis.sock", "No such file" }, { "redis://127.0.0.1:1", "refused" } };

	(void)state;
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		struct ctx ctx;

		ctx_start(&ctx, NULL);
		ctx_connect(&ctx, places[i].url, 0);
		/* Not that no connection came about in the time that it has. */
		while (strstr(redis_problem(ctx.redis), "not connected yet") != NULL)
			event_base_loop(ctx.base, EVLOOP_ONCE);
		assert_non_null(strstr(redis_problem(ctx.redis), places[i].problem));
		ctx_stop(&ctx);
	}
}

static void
test_a_server_that_becomes_a_replica_is_away(void **state)
{
	struct ctx ctx;
	struct seen seen = { 0 }, turned = { 0 };

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	run(&ctx, &add_script, "k 1", &seen);
	say(&ctx, "REPLICAOF 127.0.0.1 1", &turned);
	run(&ctx, &add_script, "k 1", &seen);
	rig_until_count(ctx.base, &ctx.downs, 1);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.errors, 1);
	rig_until_problem(ctx.base, ctx.redis, "replica, which");
	assert_int_equal(ctx.ups, 1);
	ctx_stop(&ctx);
}

/* By a connection that does not look whether this Redis is fit to be used. */
static void
tell_server(struct ctx *ctx, const char *text)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char line[256], answer[256];
	int len = snprintf(line, sizeof line, "%s\r\n", text);

	snprintf(address.sun_path, sizeof address.sun_path, "%s/redis.sock", ctx->server.dir);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(write(fd, line, (size_t)len), len);
	assert_true(read(fd, answer, sizeof answer) > 0);
	assert_true(answer[0] == '+' || answer[0] == ':');
	close(fd);
}

static void
test_another_history_has_another_identity(void **state)
{
	char first[REDIS_IDENTITY_SIZE], second[REDIS_IDENTITY_SIZE];
	struct ctx ctx;

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	snprintf(first, sizeof first, "%s", redis_identity(ctx.redis));
	assert_int_equal(strlen(first), 82);
	tell_server(&ctx, "CLIENT KILL TYPE normal");
	rig_until_count(ctx.base, &ctx.ups, 2);
	assert_string_equal(redis_identity(ctx.redis), first);
	/* The same process, with another one's data since. */
	tell_server(&ctx, "REPLICAOF 127.0.0.1 1");
	tell_server(&ctx, "REPLICAOF NO ONE");
	tell_server(&ctx, "CLIENT KILL TYPE normal");
	rig_until_count(ctx.base, &ctx.ups, 3);
	snprintf(second, sizeof second, "%s", redis_identity(ctx.redis));
	assert_string_not_equal(second, first);
	assert_memory_equal(second, first, 40);
	rig_server_kill(&ctx.server);
	rig_until_count(ctx.base, &ctx.downs, 3);
	rig_server_restart(&ctx.server);
	rig_until_count(ctx.base, &ctx.ups, 4);
	assert_memory_not_equal(redis_identity(ctx.redis), second, 40);
	ctx_stop(&ctx);
}

/* Whatever it still answers: it is away, all the time, until it takes writes again. */
static void
check_refuses_writes(struct ctx *ctx, const char *problem, const char *cure)
{
	struct seen seen = { 0 };

	for (unsigned tries = 1; ctx->downs == 0; tries++) {
		if (redis_is_up(ctx->redis))
			run(ctx, &add_script, "k 1", &seen);
		rig_until_count(ctx->base, &seen.count, tries);
		assert_true(tries < 100000);
	}
	/* As a new connection finds it. */
	rig_until_problem(ctx->base, ctx->redis, problem);
	assert_int_equal(ctx->ups, 1);
	tell_server(ctx, cure);
	rig_until_count(ctx->base, &ctx->ups, 2);
	assert_string_equal(redis_problem(ctx->redis), "");
}

static void
test_a_full_server_is_away(void **state)
{
	struct ctx ctx;

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	tell_server(&ctx, "CONFIG SET maxmemory 1");
	check_refuses_writes(&ctx, "takes no writes: OOM", "CONFIG SET maxmemory 0");
	ctx_stop(&ctx);
}

/* As Redis comes: a snapshot that fails makes it refuse writes. */
static void
test_a_server_that_can_t_save_is_away(void **state)
{
	static const char *const arguments[] = { "--enable-protected-configs", "yes", NULL };
	struct ctx ctx;
	char dir[96], text[128];

	(void)state;
	ctx_start(&ctx, rig_major_version() >= 7 ? arguments : NULL); /* those before protect nothing */
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	snprintf(dir, sizeof dir, "%s/gone", ctx.server.dir);
	assert_int_equal(mkdir(dir, 0700), 0);
	snprintf(text, sizeof text, "CONFIG SET dir %s", dir);
	tell_server(&ctx, text);
	assert_int_equal(rmdir(dir), 0);
	tell_server(&ctx, "CONFIG SET save \"3600 1000\"");
	tell_server(&ctx, "BGSAVE");
	check_refuses_writes(&ctx, "not ready: MISCONF", "CONFIG SET stop-writes-on-bgsave-error no");
	ctx_stop(&ctx);
}

/* A user without rights for what a script does is no outage, but it is told. */
static void
test_a_refused_script_is_told(void **state)
{
	struct ctx ctx;
	struct seen seen = { 0 };

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	tell_server(&ctx, "ACL SETUSER default -incrby");
	run(&ctx, &add_script, "k 1", &seen);
	run(&ctx, &add_script, "k 1", &seen);
	rig_until_count(ctx.base, &seen.count, 2);
	assert_string_equal(redis_refusal(ctx.redis), "");
	run(&ctx, &add_script, "k 1", &seen);
	rig_until_count(ctx.base, &seen.count, 3);
	assert_int_equal(seen.errors, 3);
	assert_non_null(strstr(redis_refusal(ctx.redis), "script"));
	assert_int_equal(ctx.downs, 0);
	tell_server(&ctx, "ACL SETUSER default +incrby");
	run(&ctx, &add_script, "k 1", &seen);
	rig_until_count(ctx.base, &seen.count, 4);
	assert_string_equal(redis_refusal(ctx.redis), "");
	ctx_stop(&ctx);
}

static void
test_logins_and_databases(void **state)
{
	static const char *const arguments[] = { "--requirepass", "se/cret", NULL };
	struct ctx ctx;
	struct seen seen = { 0 };
	char url[256];

	(void)state;
	ctx_start(&ctx, arguments);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_problem(ctx.base, ctx.redis, "NOAUTH");
	redis_free(ctx.redis);
	snprintf(url, sizeof url, "unix://:se%%2Fcret@%s/redis.sock?db=3", ctx.server.dir);
	ctx_connect(&ctx, url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	say(&ctx, "CLIENT LIST", &seen);
	rig_until_count(ctx.base, &seen.count, 1);
	assert_non_null(strstr(seen.text, "name=test"));
	assert_non_null(strstr(seen.text, " db=3 "));
	ctx_stop(&ctx);
}

static void
test_names_are_looked_up(void **state)
{
	struct ctx ctx;
	char port[16], url[64];
	const char *arguments[] = { "--port", port, "--bind", "127.0.0.1", NULL };
	struct seen seen = { 0 };

	(void)state;
	snprintf(port, sizeof port, "%d", 20000 + getpid() % 10000);
	ctx_start(&ctx, arguments);
	snprintf(url, sizeof url, "redis://localhost:%s/1", port);
	ctx_connect(&ctx, url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	say(&ctx, "INCR k", &seen);
	rig_until_count(ctx.base, &seen.count, 1);
	assert_int_equal(seen.number, 1);
	ctx_stop(&ctx);
}

static void
on_entries(void *arg, const struct redis_answer *answer)
{
	const struct redis_answer *stream = redis_answer_item(answer, 0);
	const struct redis_answer *entry = redis_answer_item(redis_answer_item(stream, 1), 1);
	const struct redis_answer *fields = redis_answer_item(entry, 1);
	int64_t number = -1;

	assert_true(redis_answer_is(redis_answer_item(stream, 0), "s"));
	assert_true(redis_answer_is(redis_answer_item(entry, 0), "2-1"));
	assert_true(redis_answer_number(redis_answer_field(fields, "version"), &number));
	assert_int_equal(number, -12);
	assert_false(redis_answer_number(redis_answer_field(fields, "name"), &number));
	assert_int_equal(number, -12);
	assert_int_equal(redis_answer_field(fields, "unknown")->kind, REDIS_NIL);
	assert_int_equal(redis_answer_item(redis_answer_field(fields, "name"), 3)->kind, REDIS_NIL);
	*(bool *)arg = true;
}

static void
test_trees_are_read(void **state)
{
	struct ctx ctx;
	struct seen added = { 0 };
	struct redis_args args;
	struct err err;
	bool done = false;

	(void)state;
	ctx_start(&ctx, NULL);
	ctx_connect(&ctx, ctx.server.url, 0);
	rig_until_count(ctx.base, &ctx.ups, 1);
	say(&ctx, "XADD s 1-1 version 1", &added);
	say(&ctx, "XADD s 2-1 name 7x version -12", &added);
	words(&args, "XREAD BLOCK 1000 STREAMS s 0");
	assert_int_equal(redis_send(ctx.redis, &args, (struct redis_reply_to){ on_entries, &done, 0 }, &err), 0);
	rig_until(ctx.base, &done);
	ctx_stop(&ctx);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scripts_survive_a_flush_of_scripts),
		cmocka_unit_test(test_thousands_in_flight_keep_their_order),
		cmocka_unit_test(test_a_killed_server_loses_what_is_in_flight),
		cmocka_unit_test(test_a_stopped_server_is_down_in_a_while),
		cmocka_unit_test(test_where_nobody_listens_is_told_by_the_kernels_word),
		cmocka_unit_test(test_a_server_that_becomes_a_replica_is_away),
		cmocka_unit_test(test_another_history_has_another_identity),
		cmocka_unit_test(test_a_full_server_is_away),
		cmocka_unit_test(test_a_server_that_can_t_save_is_away),
		cmocka_unit_test(test_a_refused_script_is_told),
		cmocka_unit_test(test_logins_and_databases),
		cmocka_unit_test(test_names_are_looked_up),
		cmocka_unit_test(test_trees_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
