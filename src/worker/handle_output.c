/* handle_output.c - GET /jobs/{id}/output: raw bytes of one stream, passed on piece by piece. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/alloc.h"
#include "base/err.h"
#include "domain/job/job_output.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/piece.h"
#include "worker/query.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUEUED_MAX = 256 * 1024 }; /* over which the client must read first */

struct reader {
	struct request *request;
	struct job_output *output;
};

static void
add_number(struct request *request, const char *name, int64_t value)
{
	char text[32];

	snprintf(text, sizeof text, "%lld", (long long)value);
	http_exchange_add_header(request->exchange, name, text);
}

static void
on_drain(struct http_exchange *exchange, void *arg)
{
	struct request *request = arg;
	struct reader *reader = request->wait;

	(void)exchange;
	job_output_more(reader->output);
}

static bool
on_open(const struct job_output_info *info, void *arg)
{
	struct reader *reader = arg;
	struct request *request = reader->request;

	add_number(request, "X-Output-Offset", info->offset);
	add_number(request, "X-Output-Bytes", info->bytes);
	http_exchange_add_header(request->exchange, "X-Job-Status", info->status);
	http_exchange_add_header(request->exchange, "Cache-Control", "no-store");
	respond_start(request, 200, "application/octet-stream", info->length, on_drain);
	return http_head_method(http_exchange_head(request->exchange)) != HTTP_HEAD;
}

static void
on_piece(const void *data, size_t len, void *arg)
{
	struct reader *reader = arg;
	struct evbuffer *piece = evbuffer_new();
	void *copy = alloc_bytes(len);

	if (piece == NULL)
		abort();
	memcpy(copy, data, len);
	piece_add(piece, copy, len);
	if (http_exchange_send(reader->request->exchange, piece) > QUEUED_MAX)
		job_output_rest(reader->output);
	else
		job_output_more(reader->output);
	evbuffer_free(piece);
}

static void
on_end(const struct err *why, void *arg)
{
	struct reader *reader = arg;
	struct request *request = reader->request;

	request_wait_done(request);
	free(reader);
	if (!request->started)
		respond_err(request, why);
	else if (why != NULL)
		respond_abort(request);
	else
		respond_end(request);
}

static const struct job_output_ops output_ops = { .open = on_open, .piece = on_piece, .end = on_end };

static void
wait_cancel(void *wait)
{
	struct reader *reader = wait;

	job_output_close(reader->output);
	free(reader);
}

static const struct request_wait_ops wait_ops = { .cancel = wait_cancel };

static bool
read_query(struct request *request, struct job_output_ask *ret_ask)
{
	static const struct respond_fault bad_stream = { PROBLEM_INVALID_REQUEST, "query", "stream",
		"value_error" };
	static const struct respond_fault bad_limit = { PROBLEM_INVALID_REQUEST, "query", "limit", "value_error" };
	AUTO_FREE char *stream = NULL;
	AUTO_FREE char *limit = NULL;

	*ret_ask = (struct job_output_ask){ .stream = JOB_STDOUT, .limit = INT64_MAX };
	if (!query_text(request, "stream", &stream))
		return false;
	if (stream != NULL && strcmp(stream, "stderr") == 0) {
		ret_ask->stream = JOB_STDERR;
	} else if (stream != NULL && strcmp(stream, "stdout") != 0) {
		respond_fault(request, &bad_stream, "must be stdout or stderr");
		return false;
	}
	if (!query_offset(request, "offset", &ret_ask->offset) || !query_text(request, "limit", &limit))
		return false;
	if (limit != NULL && !query_parse_count(limit, 1, &ret_ask->limit)) {
		respond_fault(request, &bad_limit, "must be a whole number, 1 or more");
		return false;
	}
	return true;
}

void
handle_job_output(struct request *request)
{
	struct job_output_ask ask;
	struct reader *reader;
	struct err err;

	if (!read_query(request, &ask))
		return;
	reader = alloc_zero(1, sizeof *reader);
	reader->request = request;
	reader->output = job_output_start(
		request->api->service, request->tenant, request->match.id, &ask, &output_ops, reader, &err);
	if (reader->output == NULL) {
		free(reader);
		respond_err(request, &err);
		return;
	}
	request_wait(request, reader, &wait_ops);
}
