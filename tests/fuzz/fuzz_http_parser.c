/*
 * fuzz_http_parser.c - any bytes, cut anywhere, mean the same message or the same refusal.
 *
 * The first byte chooses the side and where the input is cut in two.
 */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "http/http_parse.h"

#include <event2/buffer.h>

enum { MAX_HEAD = 4096 };

struct outcome {
	int rc;
	int status;
	size_t left; /* unread bytes behind the message */
	size_t body;
};

static struct outcome
parse(enum http_side side, const uint8_t *data, size_t len, size_t cut)
{
	struct http_parser parser;
	struct evbuffer *in = evbuffer_new(), *body = evbuffer_new();
	struct http_head *head = NULL;
	struct outcome outcome = { 0 };

	http_parser_init(&parser, side, MAX_HEAD);
	for (int part = 0; part < 2 && outcome.rc == 0; part++) {
		evbuffer_add(in, part == 0 ? data : data + cut, part == 0 ? cut : len - cut);
		if (head == NULL)
			outcome.rc = http_parser_head(&parser, in, &head);
		if (outcome.rc >= 0 && head != NULL)
			outcome.rc = http_parser_body(&parser, in, body, SIZE_MAX);
		/* A message that ended in the first part: the rest is the next one's. */
		if (outcome.rc == 1 && part == 0)
			evbuffer_add(in, data + cut, len - cut);
	}
	if (outcome.rc < 0)
		outcome.status = parser.status;
	if (outcome.rc == 1) {
		outcome.left = evbuffer_get_length(in);
		outcome.body = evbuffer_get_length(body);
	}
	http_head_free(head);
	evbuffer_free(in);
	evbuffer_free(body);
	return outcome;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	enum http_side side;
	struct outcome whole, cut;

	if (len < 2)
		return 0;
	side = (data[0] & 1) != 0 ? HTTP_SIDE_REQUEST : HTTP_SIDE_RESPONSE;
	whole = parse(side, data + 1, len - 1, len - 1);
	cut = parse(side, data + 1, len - 1, (size_t)(data[0] >> 1) * (len - 1) / 128);
	if (whole.rc != cut.rc || whole.status != cut.status || whole.left != cut.left || whole.body != cut.body)
		abort();
	return 0;
}
