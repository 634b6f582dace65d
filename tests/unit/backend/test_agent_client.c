/* test_agent_client.c - what each answer of an agent means; the agent is played by a server in the same loop. */
/* SPDX-License-Identifier: MIT */
#include "backend/agent_client.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <json-c/json.h>

#define JOB   "0b5a2f6e-3c1d-4e8f-9a7b-1234567890ab"
#define OTHER "1b5a2f6e-3c1d-4e8f-9a7b-1234567890ab"
#define UID   "2b5a2f6e-3c1d-4e8f-9a7b-1234567890ab"

struct rig {
	struct event_base *base;
	struct http_server *server;
	struct agent_client *client;
	struct agent_target target;
	char dir[32];
	char path[64];
	char endpoint[80];
	int listen_fd;
	/* what the agent does */
	int status; /* 0: leaves without an answer */
	const char *answer;
	struct http_exchange *held;
	bool hold;
	/* what it saw */
	int requests;
	int acks;
	char line[200];
	char token[64];
	char uid[64];
	char body[4096];
	/* what came back */
	int done;
	enum agent_outcome outcome;
	enum err_code code;
	char busy_job[64];
	uint64_t newest_fence;
	char state[32];
};

static void
on_held_gone(void *arg)
{
	((struct rig *)arg)->held = NULL;
}

static void
on_body(struct http_exchange *exchange, struct evbuffer *body, void *arg)
{
	struct rig *rig = arg;
	ssize_t n = evbuffer_copyout(body, rig->body, sizeof rig->body - 1);

	rig->body[n] = '\0';
	if (strcmp(http_head_path(http_exchange_head(exchange)), "/ack") == 0) {
		rig->acks++;
		http_exchange_respond_text(exchange, 200, "application/json", "{}", 2);
	} else if (rig->hold) {
		rig->held = exchange;
		http_exchange_on_gone(exchange, on_held_gone, rig);
	} else if (rig->status == 0) {
		http_exchange_abort(exchange);
	} else {
		http_exchange_respond_text(
			exchange, rig->status, "application/json", rig->answer, strlen(rig->answer));
	}
}

static void
on_request(struct http_exchange *exchange, void *arg)
{
	struct rig *rig = arg;
	const struct http_head *head = http_exchange_head(exchange);

	rig->requests++;
	snprintf(rig->line, sizeof rig->line, "%s %s", http_head_method_name(head), http_head_target(head));
	snprintf(rig->token, sizeof rig->token, "%s", http_head_header(head, "X-Orchard-Token"));
	snprintf(rig->uid, sizeof rig->uid, "%s", http_head_header(head, "X-Orchard-Sandbox"));
	http_exchange_collect(exchange, 100000, on_body, rig);
}

static void
on_answer(const struct agent_answer *answer, void *arg)
{
	struct rig *rig = arg;
	struct json_object *state;

	rig->done++;
	rig->outcome = answer->outcome;
	rig->code = answer->err != NULL ? answer->err->code : ERR_NONE;
	rig->newest_fence = answer->newest_fence;
	snprintf(rig->busy_job, sizeof rig->busy_job, "%s", answer->busy_job != NULL ? answer->busy_job : "");
	rig->state[0] = '\0';
	if (answer->outcome == AGENT_JOB && json_object_object_get_ex(answer->body, "state", &state))
		snprintf(rig->state, sizeof rig->state, "%s", json_object_get_string(state));
}

static void
rig_serve(struct rig *rig)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct http_server_options options = {
		.max_header_bytes = 8192,
		.max_connections = 10,
		.header_timeout_ms = 5000,
		.body_timeout_ms = 5000,
		.keepalive_timeout_ms = 60000,
		.on_request = on_request,
		.arg = rig,
	};
	struct err err;

	strcpy(addr.sun_path, rig->path);
	rig->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(rig->listen_fd, (struct sockaddr *)&addr, sizeof addr), 0);
	assert_int_equal(listen(rig->listen_fd, 16), 0);
	assert_int_equal(http_server_create(rig->base, rig->listen_fd, &options, &rig->server, &err), 0);
}

static void
rig_unserve(struct rig *rig)
{
	http_server_free(rig->server);
	rig->server = NULL;
	close(rig->listen_fd);
	unlink(rig->path);
}

static int
setup(void **state)
{
	struct rig *rig = calloc(1, sizeof *rig);
	struct agent_client_options options = { 1000, 0 };
	struct err err;

	strcpy(rig->dir, "/tmp/agent-client-XXXXXX");
	assert_non_null(mkdtemp(rig->dir));
	snprintf(rig->path, sizeof rig->path, "%s/socket", rig->dir);
	snprintf(rig->endpoint, sizeof rig->endpoint, "unix:%s", rig->path);
	rig->target = (struct agent_target){ rig->endpoint, "sb-1", UID, "secret" };
	rig->base = event_base_new();
	rig_serve(rig);
	assert_int_equal(agent_client_create(rig->base, &options, &rig->client, &err), 0);
	*state = rig;
	return 0;
}

static int
teardown(void **state)
{
	struct rig *rig = *state;

	agent_client_free(rig->client);
	rig_unserve(rig);
	event_base_free(rig->base);
	rmdir(rig->dir);
	free(rig);
	return 0;
}

static bool
rig_until(struct rig *rig, const int *counter, int value)
{
	int64_t end = clock_boot_ms() + 5000;

	while (*counter < value && clock_boot_ms() < end) {
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
		poll(NULL, 0, 1);
	}
	return *counter == value;
}

static struct agent_call *
rig_exec(struct rig *rig)
{
	struct agent_exec exec = { .job_id = JOB, .fence = 7, .lane = "main", .timeout_ms = 5000 };
	struct agent_call *call;
	struct err err;

	exec.spec = json_object_new_object();
	json_object_object_add(exec.spec, "command", json_object_new_string("true"));
	/* The caller's fields never replace the client's own. */
	json_object_object_add(exec.spec, "job_id", json_object_new_string("x"));
	rig->done = 0;
	assert_int_equal(agent_exec_start(rig->client, &rig->target, &exec, on_answer, rig, &call, &err), 0);
	assert_int_equal(rig->done, 0);
	json_object_put(exec.spec);
	return call;
}

static void
test_exec_carries_all_fields_and_who_it_is_for(void **state)
{
	struct rig *rig = *state;
	AUTO_JSON struct json_object *body = NULL;
	struct json_object *value;
	struct err err;

	rig->status = 200;
	rig->answer = "{\"job_id\":\"" JOB "\",\"state\":\"ended\"}";
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_int_equal(rig->outcome, AGENT_JOB);
	assert_string_equal(rig->state, "ended");
	assert_string_equal(rig->line, "POST /exec");
	assert_string_equal(rig->token, "secret");
	assert_string_equal(rig->uid, UID);
	body = json_parse(rig->body, strlen(rig->body), &err);
	assert_true(json_object_object_get_ex(body, "job_id", &value));
	assert_string_equal(json_object_get_string(value), JOB);
	assert_true(json_object_object_get_ex(body, "fence", &value));
	assert_int_equal(json_object_get_int64(value), 7);
	assert_true(json_object_object_get_ex(body, "lane", &value));
	assert_string_equal(json_object_get_string(value), "main");
	assert_true(json_object_object_get_ex(body, "timeout_ms", &value));
	assert_int_equal(json_object_get_int64(value), 5000);
	assert_true(json_object_object_get_ex(body, "command", &value));
	assert_false(json_object_object_get_ex(body, "ack", &value));
}

static const struct {
	int status;
	const char *answer;
	enum agent_outcome outcome;
	enum err_code code;
} outcomes[] = {
	{ 200, "{\"job_id\":\"" JOB "\",\"state\":\"running\"}", AGENT_JOB, ERR_NONE },
	{ 200, "{\"job_id\":\"" OTHER "\"}", AGENT_LOST, ERR_INTERNAL },
	{ 200, "{\"job_id\":\"" JOB "\"", AGENT_LOST, ERR_INVALID },
	{ 200, "[]", AGENT_LOST, ERR_INTERNAL },
	{ 409, "{\"code\":\"busy\",\"job_id\":\"" OTHER "\"}", AGENT_BUSY, ERR_NONE },
	{ 409, "{\"code\":\"busy\"}", AGENT_REFUSED, ERR_INVALID },
	{ 409, "{\"code\":\"stale_fence\",\"newest_fence\":9007199254740993}", AGENT_STALE, ERR_NONE },
	{ 404, "{\"code\":\"unknown_job\"}", AGENT_UNKNOWN_JOB, ERR_NONE },
	{ 404, "{\"code\":\"not_found\"}", AGENT_REFUSED, ERR_INVALID },
	{ 410, "{\"code\":\"forgotten_job\"}", AGENT_FORGOTTEN, ERR_STALE },
	{ 403, "{\"code\":\"denied\"}", AGENT_DENIED, ERR_DENIED },
	{ 422, "{\"code\":\"invalid\",\"detail\":\"no\"}", AGENT_REFUSED, ERR_INVALID },
	{ 413, "no json", AGENT_REFUSED, ERR_TOO_LARGE },
	{ 503, "{\"code\":\"journal_full\"}", AGENT_REFUSED, ERR_BUSY },
	{ 500, "oops", AGENT_LOST, ERR_AGENT_UNREACHABLE },
	{ 0, "", AGENT_LOST, ERR_AGENT_UNREACHABLE },
};

static void
test_every_answer_has_its_outcome(void **state)
{
	struct rig *rig = *state;

	for (size_t i = 0; i < sizeof outcomes / sizeof outcomes[0]; i++) {
		rig->status = outcomes[i].status;
		rig->answer = outcomes[i].answer;
		rig->requests = 0;
		rig_exec(rig);
		assert_true(rig_until(rig, &rig->done, 1));
		if (rig->outcome != outcomes[i].outcome || rig->code != outcomes[i].code)
			fail_msg("%d %s: outcome %d, code %d", outcomes[i].status, outcomes[i].answer, rig->outcome,
				rig->code);
		if (rig->outcome == AGENT_BUSY)
			assert_string_equal(rig->busy_job, OTHER);
		if (rig->outcome == AGENT_STALE)
			assert_true(rig->newest_fence == 9007199254740993u);
		assert_int_equal(rig->requests, 1);
	}
}

static void
test_no_agent_is_not_sent(void **state)
{
	struct rig *rig = *state;

	rig_unserve(rig);
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_int_equal(rig->outcome, AGENT_NOT_SENT);
	assert_int_equal(rig->code, ERR_AGENT_UNREACHABLE);
	rig_serve(rig);
}

static void
test_get_cancel_and_health_ask_the_right_route(void **state)
{
	struct rig *rig = *state;
	struct agent_call *call;
	struct err err;

	rig->status = 200;
	rig->answer = "{\"job_id\":\"" JOB "\",\"state\":\"running\"}";
	assert_int_equal(agent_job_get(rig->client, &rig->target, JOB, 250, on_answer, rig, &call, &err), 0);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_string_equal(rig->line, "GET /jobs/" JOB "?wait_ms=250");
	assert_int_equal(rig->outcome, AGENT_JOB);
	assert_int_equal(agent_job_cancel(rig->client, &rig->target, JOB, on_answer, rig, &call, &err), 0);
	assert_true(rig_until(rig, &rig->done, 2));
	assert_string_equal(rig->line, "POST /jobs/" JOB "/cancel");
	rig->answer = "{\"status\":\"ok\"}";
	assert_int_equal(agent_health(rig->client, &rig->target, 1000, on_answer, rig, &call, &err), 0);
	assert_true(rig_until(rig, &rig->done, 3));
	assert_string_equal(rig->line, "GET /health");
	assert_int_equal(rig->outcome, AGENT_JOB);
	assert_int_equal(agent_job_get(rig->client, &rig->target, "../ack", 0, on_answer, rig, &call, &err), -1);
}

static void
test_health_that_takes_too_long_is_told(void **state)
{
	struct rig *rig = *state;
	struct agent_call *call;
	struct err err;

	rig->hold = true;
	assert_int_equal(agent_health(rig->client, &rig->target, 30, on_answer, rig, &call, &err), 0);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_int_equal(rig->outcome, AGENT_LOST);
	assert_int_equal(rig->code, ERR_TIMEOUT);
}

static void
test_acks_travel_with_the_next_exec(void **state)
{
	struct rig *rig = *state;

	rig->status = 200;
	rig->answer = "{\"job_id\":\"" JOB "\",\"state\":\"ended\"}";
	agent_job_ack(rig->client, &rig->target, OTHER);
	agent_job_ack(rig->client, &rig->target, UID);
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_non_null(strstr(rig->body, "\"ack\":[\"" OTHER "\",\"" UID "\"]"));
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_null(strstr(rig->body, "\"ack\""));
}

static void
test_acks_go_alone_after_a_second(void **state)
{
	struct rig *rig = *state;

	agent_job_ack(rig->client, &rig->target, OTHER);
	assert_true(rig_until(rig, &rig->acks, 1));
	assert_string_equal(rig->line, "POST /ack");
	assert_string_equal(rig->body, "{\"ack\":[\"" OTHER "\"]}");
}

static void
test_acks_of_a_lost_exec_are_sent_again(void **state)
{
	struct rig *rig = *state;

	rig->status = 0;
	agent_job_ack(rig->client, &rig->target, OTHER);
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_int_equal(rig->outcome, AGENT_LOST);
	assert_true(rig_until(rig, &rig->acks, 1));
	assert_non_null(strstr(rig->body, OTHER));
}

static void
test_many_acks_go_at_once(void **state)
{
	struct rig *rig = *state;

	for (int i = 0; i < 128; i++)
		agent_job_ack(rig->client, &rig->target, OTHER);
	for (int64_t end = clock_boot_ms() + 500; rig->acks == 0 && clock_boot_ms() < end;)
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
	assert_int_equal(rig->acks, 1);
}

static void
test_cancel_leaves_without_a_callback(void **state)
{
	struct rig *rig = *state;
	struct agent_call *call;

	rig->hold = true;
	call = rig_exec(rig);
	assert_true(rig_until(rig, &rig->requests, 1));
	agent_call_cancel(call);
	for (int64_t end = clock_boot_ms() + 5000; rig->held != NULL && clock_boot_ms() < end;)
		event_base_loop(rig->base, EVLOOP_NONBLOCK);
	assert_null(rig->held);
	assert_int_equal(rig->done, 0);
}

static void
test_forgetting_ends_calls_from_the_loop(void **state)
{
	struct rig *rig = *state;

	rig->hold = true;
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->requests, 1));
	agent_client_forget(rig->client, UID);
	agent_client_forget(rig->client, UID);
	assert_int_equal(rig->done, 0);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_int_equal(rig->outcome, AGENT_LOST);
	rig->hold = false;
	rig->status = 200;
	rig->answer = "{\"job_id\":\"" JOB "\",\"state\":\"ended\"}";
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_int_equal(rig->outcome, AGENT_JOB);
}

static void
test_another_endpoint_leaves_running_calls_alone(void **state)
{
	struct rig *rig = *state;
	struct agent_target moved = rig->target;
	struct agent_call *call;
	struct err err;

	rig->hold = true;
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->requests, 1));
	moved.endpoint = "unix:/nonexistent/socket";
	assert_int_equal(agent_health(rig->client, &moved, 1000, on_answer, rig, &call, &err), 0);
	assert_true(rig_until(rig, &rig->done, 1));
	assert_int_equal(rig->outcome, AGENT_NOT_SENT);
	assert_non_null(rig->held);
	rig->answer = "{\"job_id\":\"" JOB "\",\"state\":\"ended\"}";
	http_exchange_on_gone(rig->held, NULL, NULL);
	http_exchange_respond_text(rig->held, 200, "application/json", rig->answer, strlen(rig->answer));
	assert_true(rig_until(rig, &rig->done, 2));
	assert_int_equal(rig->outcome, AGENT_JOB);
}

static void
test_free_ends_what_runs(void **state)
{
	struct rig *rig = *state;

	rig->hold = true;
	rig_exec(rig);
	assert_true(rig_until(rig, &rig->requests, 1));
	agent_client_free(rig->client);
	rig->client = NULL;
	assert_int_equal(rig->done, 1);
	assert_int_equal(rig->outcome, AGENT_LOST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_exec_carries_all_fields_and_who_it_is_for),
		TEST(test_every_answer_has_its_outcome),
		TEST(test_no_agent_is_not_sent),
		TEST(test_get_cancel_and_health_ask_the_right_route),
		TEST(test_health_that_takes_too_long_is_told),
		TEST(test_acks_travel_with_the_next_exec),
		TEST(test_acks_go_alone_after_a_second),
		TEST(test_acks_of_a_lost_exec_are_sent_again),
		TEST(test_many_acks_go_at_once),
		TEST(test_cancel_leaves_without_a_callback),
		TEST(test_forgetting_ends_calls_from_the_loop),
		TEST(test_another_endpoint_leaves_running_calls_alone),
		TEST(test_free_ends_what_runs),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
