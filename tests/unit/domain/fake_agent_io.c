/* fake_agent_io.c - the agent's output by offset and stdin, for the one command that matters to a test. */
/* SPDX-License-Identifier: MIT */
#include "fakes.h"
#include "fixture.h"
#include "base/text.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <event2/buffer.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POLLS = sizeof((struct fixture *)NULL)->polls / sizeof((struct fixture *)NULL)->polls[0] };

static int64_t
query_number(const char *query, const char *name)
{
	const char *at = strstr(query, name);

	return at != NULL ? strtoll(at + strlen(name), NULL, 10) : -1;
}

static void
answer(struct http_exchange *exchange, int status, const char *text)
{
	http_exchange_on_gone(exchange, NULL, NULL);
	http_exchange_respond_text(exchange, status, "application/json", text, strlen(text));
}

static bool
all_ended(const struct fixture *f)
{
	for (int i = 0; i < f->job_count; i++)
		if (!f->jobs[i].ended)
			return false;
	return true;
}

static void
answer_output(struct fixture *f, struct http_exchange *exchange, int64_t offset)
{
	int64_t total = (int64_t)strlen(f->output);
	char text[1024], base64[400];

	if (f->output_answer != NULL) {
		answer(exchange, 200, f->output_answer);
		return;
	}
	if (offset < 0)
		offset = 0;
	if (offset > total)
		offset = total;
	text_base64_encode(f->output + offset, (size_t)(total - offset), base64);
	snprintf(text, sizeof text,
		"{\"state\":\"%s\",\"stdout\":{\"offset\":%lld,\"bytes\":%lld,\"base64\":\"%s\"},"
		"\"stderr\":{\"offset\":0,\"bytes\":0,\"base64\":\"\"}}",
		all_ended(f) ? "ended" : "running", (long long)offset, (long long)total, base64);
	answer(exchange, 200, text);
}

void
fake_agent_polls(struct fixture *f)
{
	for (int i = 0; i < POLLS; i++) {
		struct http_exchange *exchange = f->polls[i];

		if (exchange == NULL || (f->poll_offsets[i] >= (int64_t)strlen(f->output) && !all_ended(f)))
			continue;
		f->polls[i] = NULL;
		answer_output(f, exchange, f->poll_offsets[i]);
	}
}

void
fake_write(struct fixture *f, const char *text)
{
	assert_true(strlen(f->output) + strlen(text) < sizeof f->output);
	strcat(f->output, text);
	fake_agent_polls(f);
}

static void
on_poll_gone(void *arg)
{
	*(struct http_exchange **)arg = NULL;
}

static void
read_output(struct fixture *f, struct http_exchange *exchange, const char *query)
{
	int64_t offset = query_number(query, "stdout_offset=");
	int i = 0;

	f->reads++;
	if (f->output_cuts > 0) {
		f->output_cuts--;
		http_exchange_abort(exchange);
		return;
	}
	if (query_number(query, "wait_ms=") <= 0 || offset < (int64_t)strlen(f->output) || all_ended(f) ||
		f->output_answer != NULL) {
		answer_output(f, exchange, offset);
		return;
	}
	while (i < POLLS && f->polls[i] != NULL)
		i++;
	assert_true(i < POLLS);
	f->polls[i] = exchange;
	f->poll_offsets[i] = offset;
	http_exchange_on_gone(exchange, on_poll_gone, &f->polls[i]);
}

static void
on_input(struct http_exchange *exchange, struct evbuffer *body, void *arg)
{
	struct fixture *f = arg;
	const char *query = http_head_query(http_exchange_head(exchange));
	const char *id = strstr(query, "write_id=") + strlen("write_id=");
	size_t len = evbuffer_get_length(body), had = strlen(f->input);
	char text[128];

	f->writes++;
	if (strncmp(f->last_write, id, ID_UUID_SIZE - 1) != 0) {
		assert_true(had + len < sizeof f->input);
		evbuffer_remove(body, f->input + had, len);
		snprintf(f->last_write, sizeof f->last_write, "%.36s", id);
	}
	if (f->write_cuts > 0) {
		f->write_cuts--;
		http_exchange_abort(exchange);
		return;
	}
	snprintf(text, sizeof text, "{\"accepted\":%zu,\"stdin_bytes\":%zu,\"closed\":%s}", len, strlen(f->input),
		strstr(query, "eof=1") != NULL ? "true" : "false");
	answer(exchange, 200, text);
}

bool
fake_agent_io(struct fixture *f, struct http_exchange *exchange, struct fake_job *job, const char *path,
	const char *query)
{
	if (strstr(path, "/output") != NULL)
		read_output(f, exchange, query);
	else if (strstr(path, "/stdin") == NULL)
		return false;
	else if (job->ended || f->stdin_closed)
		answer(exchange, 409, "{\"code\":\"stdin_closed\",\"detail\":\"no more\"}");
	else
		http_exchange_collect(exchange, 1 << 20, on_input, f);
	return true;
}
