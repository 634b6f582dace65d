/* api_fixture.c - server and client of the handler tests. */
/* SPDX-License-Identifier: MIT */
#include "api_fixture.h"

#include "fake_domain.h"

#include "base/err.h"
#include "base/json.h"
#include "base/log.h"
#include "ipc/shm.h"
#include "worker/api.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { WATCHDOG_S = 60 };

static char key[] = "test-key";
static char *keys[] = { key };

static void
listen_on_loopback(struct fixture *fixture)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof addr;

	fixture->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fixture->listen_fd >= 0);
	assert_int_equal(bind(fixture->listen_fd, (struct sockaddr *)&addr, len), 0);
	assert_int_equal(listen(fixture->listen_fd, 16), 0);
	assert_int_equal(getsockname(fixture->listen_fd, (struct sockaddr *)&addr, &len), 0);
	fixture->port = ntohs(addr.sin_port);
}

static void
open_shm(struct fixture *fixture)
{
	struct shm_sizes sizes = { .sandboxes = 16, .jobs = 16, .records = 1024 };
	bool adopted;
	struct err err;
	int fd;

	strcpy(fixture->shm_path, "/tmp/orchard-test-shm-XXXXXX");
	fd = mkstemp(fixture->shm_path);
	assert_true(fd >= 0);
	close(fd);
	unlink(fixture->shm_path);
	if (shm_open_or_create(fixture->shm_path, &sizes, &fixture->shm, &adopted, &err) != 0)
		fail_msg("%s", err.msg);
}

static struct config
test_config(void)
{
	static char driver[] = "local";

	return (struct config){
		.driver = driver,
		.auth_enabled = true,
		.metrics_auth = true,
		.api_keys = { 1, keys },
		.max_connections = 100,
		.max_header_bytes = 32 * 1024,
		.max_body_bytes = 4096,
		.body_memory_bytes = 64 * 1024,
		.header_timeout_seconds = 10,
		.body_timeout_seconds = 10,
		.keepalive_timeout_seconds = 60,
		.max_wait_seconds = 1000,
		.max_concurrent_execs = 7,
	};
}

void
fixture_prepare(struct fixture *fixture)
{
	struct err err;

	alarm(WATCHDOG_S);
	signal(SIGPIPE, SIG_IGN);
	log_init("test", LOG_LEVEL_ERROR);
	fake_reset();
	*fixture = (struct fixture){ .client = -1, .config = test_config() };
	listen_on_loopback(fixture);
	open_shm(fixture);
	assert_int_equal(scoreboard_claim(shm_scoreboard(fixture->shm), PROC_WORKER, &fixture->self, &err), 0);
}

void
fixture_release(struct fixture *fixture)
{
	shm_close(fixture->shm);
	unlink(fixture->shm_path);
	if (fixture->client >= 0)
		close(fixture->client);
	close(fixture->listen_fd);
}

int
fixture_setup(void **state)
{
	struct fixture *fixture = malloc(sizeof *fixture);
	struct err err;

	fixture_prepare(fixture);
	fixture->base = event_base_new();

	struct api_options options = { .base = fixture->base,
		.listen_fd = fixture->listen_fd,
		.config = &fixture->config,
		.shm = fixture->shm,
		.self = fixture->self };

	if (api_create(&options, &fixture->api, &err) != 0)
		fail_msg("%s", err.msg);
	*state = fixture;
	return 0;
}

int
fixture_teardown(void **state)
{
	struct fixture *fixture = *state;

	api_free(fixture->api);
	event_base_free(fixture->base);
	fixture_release(fixture);
	free(fixture);
	return 0;
}

int
fixture_connect(struct fixture *fixture)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)fixture->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof addr), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

void
fixture_send(int fd, const char *bytes)
{
	size_t len = strlen(bytes);

	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
}

/* --- receiving --- */

struct receiver {
	char bytes[256 * 1024];
	size_t len;
	bool ended;
	struct event_base *base;
};

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct receiver *receiver = arg;
	ssize_t n = recv(fd, receiver->bytes + receiver->len, sizeof receiver->bytes - 1 - receiver->len, 0);

	(void)what;
	if (n <= 0)
		receiver->ended = true;
	else
		receiver->len += (size_t)n;
	receiver->bytes[receiver->len] = '\0';
}

static bool
is_whole(const struct receiver *receiver, bool head_only, size_t *ret_head_len, size_t *ret_body_len)
{
	const char *end = strstr(receiver->bytes, "\r\n\r\n");
	const char *length = strcasestr(receiver->bytes, "\r\nContent-Length:");

	if (end == NULL)
		return false;
	*ret_head_len = (size_t)(end - receiver->bytes) + 4;
	*ret_body_len = length != NULL && length < end && !head_only ? strtoul(length + 17, NULL, 10) : 0;
	return receiver->len >= *ret_head_len + *ret_body_len;
}

struct reply
fixture_reply(struct fixture *fixture, int fd, bool head_only)
{
	static struct receiver receiver;
	struct event *readable = event_new(fixture->base, fd, EV_READ | EV_PERSIST, on_readable, &receiver);
	struct reply reply = { 0 };
	size_t head_len = 0;
	struct err err;

	receiver.len = 0;
	receiver.bytes[0] = '\0';
	receiver.ended = false;
	event_add(readable, NULL);
	while (!is_whole(&receiver, head_only, &head_len, &reply.body_len)) {
		assert_false(receiver.ended);
		event_base_loop(fixture->base, EVLOOP_ONCE);
	}
	event_free(readable);
	assert_true(head_len < sizeof reply.head);
	memcpy(reply.head, receiver.bytes, head_len);
	assert_int_equal(sscanf(reply.head, "HTTP/1.1 %d ", &reply.status), 1);
	reply.body = strndup(receiver.bytes + head_len, reply.body_len);
	reply.json = json_parse(reply.body, reply.body_len, &err);
	return reply;
}

void
reply_fini(struct reply *reply)
{
	json_object_put(reply->json);
	free(reply->body);
}

/* --- calls --- */

void
fixture_start(struct fixture *fixture, const char *method, const char *path, const char *body)
{
	char length[64] = "";
	char *text = NULL;

	if (fixture->client < 0)
		fixture->client = fixture_connect(fixture);
	if (body != NULL)
		snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
	assert_true(asprintf(&text, "%s %s HTTP/1.1\r\nHost: test\r\nX-API-Key: test-key\r\n%s\r\n%s", method, path,
			    length, body != NULL ? body : "") > 0);
	fixture_send(fixture->client, text);
	free(text);
}

struct reply
fixture_call(struct fixture *fixture, const char *method, const char *path, const char *body)
{
	struct reply reply;

	fixture_start(fixture, method, path, body);
	reply = fixture_reply(fixture, fixture->client, strcmp(method, "HEAD") == 0);
	if (reply_header(&reply, "Connection") != NULL &&
		strcasecmp(reply_header(&reply, "Connection"), "close") == 0) {
		close(fixture->client);
		fixture->client = -1;
	}
	return reply;
}

void
fixture_run_once(struct fixture *fixture)
{
	event_base_loop(fixture->base, EVLOOP_ONCE);
}

void
fixture_run_until(struct fixture *fixture, const bool *flag, bool wanted)
{
	while (*flag != wanted)
		fixture_run_once(fixture);
}

/* --- looking --- */

const char *
reply_header(const struct reply *reply, const char *name)
{
	static char value[512];
	char pattern[128];
	const char *found;

	snprintf(pattern, sizeof pattern, "\r\n%s: ", name);
	found = strcasestr(reply->head, pattern);
	if (found == NULL)
		return NULL;
	found += strlen(pattern);
	snprintf(value, sizeof value, "%.*s", (int)strcspn(found, "\r"), found);
	return value;
}

const char *
reply_text(const struct reply *reply, const char *member)
{
	struct json_object *value;

	if (!json_object_object_get_ex(reply->json, member, &value) || value == NULL)
		return "";
	return json_object_get_string(value);
}

void
assert_problem(const struct reply *reply, int status, const char *code)
{
	const char *id = reply_header(reply, "X-Request-ID");

	assert_int_equal(reply->status, status);
	assert_string_equal(reply_text(reply, "code"), code);
	assert_non_null(id);
	assert_string_equal(reply_text(reply, "request_id"), id);
	assert_string_not_equal(reply_text(reply, "detail"), "");
	assert_int_equal(
		reply_header(reply, "Retry-After") != NULL, status == 503 || strcmp(code, "conflict") == 0);
}

void
assert_fault(const struct reply *reply, const char *place, const char *field)
{
	struct json_object *detail, *fault, *loc;

	assert_int_equal(reply->status, 422);
	assert_true(json_object_object_get_ex(reply->json, "detail", &detail));
	assert_true(json_object_is_type(detail, json_type_array));
	fault = json_object_array_get_idx(detail, 0);
	assert_true(json_object_object_get_ex(fault, "loc", &loc));
	assert_string_equal(json_object_get_string(json_object_array_get_idx(loc, 0)), place);
	if (field != NULL)
		assert_string_equal(json_object_get_string(json_object_array_get_idx(loc, 1)), field);
	else
		assert_int_equal(json_object_array_length(loc), 1);
	assert_true(json_object_object_get_ex(fault, "msg", NULL));
	assert_true(json_object_object_get_ex(fault, "type", NULL));
}
