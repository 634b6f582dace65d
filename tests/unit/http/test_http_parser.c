/* test_http_parser.c - what is a message, and what is refused, however it is cut. */
/* SPDX-License-Identifier: MIT */
#include "http/http_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>

enum { MAX_HEAD = 4096 };

struct text {
	const char *bytes;
	size_t len;
};
#define TEXT(s)                                                                                                    \
	{                                                                                                          \
		(s), sizeof(s) - 1                                                                                 \
	}

/* Reads one message whose bytes come in two parts, the first of cut bytes; returns 200 or the refusal. */
static int
parse_cut(enum http_side side, const struct text *text, size_t cut, struct http_head **ret_head,
	struct evbuffer *body)
{
	struct http_parser parser;
	struct evbuffer *in = evbuffer_new();
	struct http_head *head = NULL;
	int rc = 0;

	http_parser_init(&parser, side, MAX_HEAD);
	for (int part = 0; part < 2 && rc >= 0; part++) {
		evbuffer_add(in, part == 0 ? text->bytes : text->bytes + cut, part == 0 ? cut : text->len - cut);
		if (head == NULL)
			rc = http_parser_head(&parser, in, &head);
		if (rc >= 0 && head != NULL)
			rc = http_parser_body(&parser, in, body, SIZE_MAX);
	}
	evbuffer_free(in);
	if (rc < 0 || ret_head == NULL)
		http_head_free(head);
	else
		*ret_head = head;
	return rc < 0 ? parser.status : rc == 1 ? 200 : 0;
}

static int
parse(enum http_side side, const struct text *text)
{
	struct evbuffer *body = evbuffer_new();
	int status = parse_cut(side, text, text->len, NULL, body);

	for (size_t cut = 0; cut < text->len && text->len < 2000; cut++) {
		int again = parse_cut(side, text, cut, NULL, body);

		if (again != status)
			fail_msg("cut at %zu gives %d, not %d: %s", cut, again, status, text->bytes);
	}
	evbuffer_free(body);
	return status;
}

#define GET     "GET / HTTP/1.1\r\nHost: x\r\n"
#define POST    "POST / HTTP/1.1\r\nHost: x\r\n"
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static const struct {
	int status;
	struct text text;
} requests[] = {
	{ 200, TEXT(GET "\r\n") },
	{ 200, TEXT("\r\n" GET "\r\n") },
	{ 200, TEXT("GET http://x/a?b HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 200, TEXT("GET https://x HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 200, TEXT("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 200, TEXT("GET / HTTP/1.0\r\n\r\n") },
	{ 200, TEXT(GET "Empty:\r\nBlank: \t \r\nHigh: \xc3\xa4\r\n\r\n") },
	{ 200, TEXT(POST "Content-Length: 5\r\n\r\nhello") },
	{ 200, TEXT(POST "content-length:\t5 \r\n\r\nhello") },
	{ 200, TEXT(CHUNKED "5\r\nhello\r\n3;ext=\"1\"\r\nabc\r\nA ;x\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\n") },
	{ 200, TEXT(CHUNKED "0000\r\n\r\n") },
	{ 200, TEXT(POST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx") },
	/* the start line */
	{ 400, TEXT("GARBAGE\r\n\r\n") },
	{ 400, TEXT("GET /\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET  / HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET / HTTP/1.1 \r\nHost: x\r\n\r\n") },
	{ 400, TEXT(" GET / HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("G@T / HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET a HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET * HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET / http/1.1\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET / HTTP/\r\nHost: x\r\n\r\n") },
	{ 505, TEXT("GET / HTTP/2.0\r\nHost: x\r\n\r\n") },
	{ 505, TEXT("PRI * HTTP/2.0\r\n\r\n") },
	/* lines */
	{ 400, TEXT("GET / HTTP/1.1\nHost: x\n\n") },
	{ 400, TEXT(GET "A: b\n\r\n") },
	{ 400, TEXT(GET "A: b\rc\r\n\r\n") },
	{ 400, TEXT(GET "A: b\r\r\n\r\n") },
	{ 400, TEXT(GET "A: b\0c\r\n\r\n") },
	{ 400, TEXT("GET / HTTP/1.1\0\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("\n" GET "\r\n") },
	/* fields */
	{ 400, TEXT("GET / HTTP/1.1\r\n\r\n") },
	{ 400, TEXT("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n") },
	{ 400, TEXT("GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n") },
	{ 400, TEXT("GET / HTTP/1.1\r\nHost : x\r\n\r\n") },
	{ 400, TEXT(GET "A: b\r\n c\r\n\r\n") },
	{ 400, TEXT("GET / HTTP/1.1\r\n Host: x\r\n\r\n") },
	{ 400, TEXT(GET ": b\r\n\r\n") },
	{ 400, TEXT(GET "nocolon\r\n\r\n") },
	{ 400, TEXT(GET "a b: c\r\n\r\n") },
	{ 400, TEXT(GET "A: \x1b\r\n\r\n") },
	{ 400, TEXT(GET "A: \x7f\r\n\r\n") },
	{ 200, TEXT(POST "Content-Encoding: Identity\r\nContent-Length: 1\r\n\r\nx") },
	{ 415, TEXT(POST "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx") },
	{ 417, TEXT(POST "Expect: miracles\r\nContent-Length: 1\r\n\r\nx") },
	/* the length of the body */
	{ 400, TEXT(POST "Content-Length: -5\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: +5\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 0x5\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 5 5\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 5, 5\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length:\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 1e30\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 99999999999999999999\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello") },
	{ 400, TEXT(POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
	{ 400, TEXT(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n") },
	{ 400, TEXT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
	{ 400, TEXT(POST "Transfer-Encoding:\r\n\r\n") },
	{ 400, TEXT("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") },
	{ 501, TEXT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n") },
	{ 501, TEXT(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n") },
	{ 501, TEXT(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n") },
	{ 501, TEXT(POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n") },
	/* chunks */
	{ 400, TEXT(CHUNKED "4\r\nabcd1\r") }, /* at once, however it is cut */
	{ 400, TEXT(CHUNKED "0x5\r\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "-5\r\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED " 5\r\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "5 \r\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "\r\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "5\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "5;a\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "5;\x01\r\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "5\r\nhelloX\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "5\r\nhello\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "5\r\nhello\r0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "1234567890abcdef\r\nhello\r\n0\r\n\r\n") },
	{ 400, TEXT(CHUNKED "0\r\nbad trailer\r\n\r\n") },
	{ 400, TEXT(CHUNKED "0\r\n folded: x\r\n\r\n") },
	{ 400, TEXT(CHUNKED "0\r\nX: \n\r\n") },
	/* not complete */
	{ 0, TEXT("") },
	{ 0, TEXT(GET) },
	{ 0, TEXT(POST "Content-Length: 5\r\n\r\nhell") },
	{ 0, TEXT(CHUNKED "5\r\nhello\r\n0\r\n") },
};

static void
test_requests_are_judged_the_same_at_every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		int status = parse(HTTP_SIDE_REQUEST, &requests[i].text);

		if (status != requests[i].status)
			fail_msg("%d, not %d: %s", status, requests[i].status, requests[i].text.bytes);
	}
}

static const struct {
	int status; /* of the parse */
	int64_t length;
	struct text text;
} responses[] = {
	{ 200, 0, TEXT("HTTP/1.1 204 No Content\r\n\r\n") },
	{ 200, 0, TEXT("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n") },
	{ 200, 0, TEXT("HTTP/1.1 100 Continue\r\n\r\n") },
	{ 200, 2, TEXT("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok") },
	{ 200, 2, TEXT("HTTP/1.1 200 \r\nContent-Length: 2\r\n\r\nok") },
	{ 200, -1, TEXT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n") },
	{ 0, -2, TEXT("HTTP/1.0 200 OK\r\n\r\nok") },
	{ 400, 0, TEXT("HTTP/1.1 20 OK\r\n\r\n") },
	{ 400, 0, TEXT("HTTP/1.1 2000 OK\r\n\r\n") },
	{ 400, 0, TEXT("HTTP/1.1 099 OK\r\n\r\n") },
	{ 400, 0, TEXT("HTTP/1.1\r\n\r\n") },
	{ 400, 0, TEXT("HTTP/2.0 200 OK\r\n\r\n") },
	{ 400, 0, TEXT("200 OK\r\n\r\n") },
	{ 400, 0, TEXT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok") },
	{ 400, 0, TEXT("HTTP/1.1 200 OK\nContent-Length: 2\n\nok") },
	{ 501, 0, TEXT("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok") },
};

static void
test_responses_are_judged_the_same_at_every_cut(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof responses / sizeof responses[0]; i++) {
		struct evbuffer *body = evbuffer_new();
		struct http_head *head = NULL;

		assert_int_equal(parse(HTTP_SIDE_RESPONSE, &responses[i].text), responses[i].status);
		parse_cut(HTTP_SIDE_RESPONSE, &responses[i].text, responses[i].text.len, &head, body);
		if (head != NULL)
			assert_int_equal(head->length, responses[i].length);
		http_head_free(head);
		evbuffer_free(body);
	}
}

static void
test_bodies_come_out_whole_at_every_cut(void **state)
{
	static const struct text text = TEXT(
		CHUNKED "5;a=b\r\nhello\r\n1\r\n,\r\n6\r\n world\r\n0\r\nT: 1\r\n\r\n");

	(void)state;
	for (size_t cut = 0; cut <= text.len; cut++) {
		struct evbuffer *body = evbuffer_new();

		assert_int_equal(parse_cut(HTTP_SIDE_REQUEST, &text, cut, NULL, body), 200);
		assert_int_equal(evbuffer_get_length(body), 12);
		assert_memory_equal(evbuffer_pullup(body, -1), "hello, world", 12);
		evbuffer_free(body);
	}
}

static void
test_head_tells_its_parts(void **state)
{
	static const struct text text = TEXT("PUT http://h:1/p%20q?a=1&b HTTP/1.1\r\nHost: h\r\nX-A:  one \r\n"
					     "x-a: two\r\nConnection: foo, CLOSE\r\n\r\n");
	struct evbuffer *body = evbuffer_new();
	struct http_head *head;

	(void)state;
	assert_int_equal(parse_cut(HTTP_SIDE_REQUEST, &text, text.len, &head, body), 200);
	assert_int_equal(http_head_method(head), HTTP_PUT);
	assert_string_equal(http_head_method_name(head), "PUT");
	assert_string_equal(http_head_target(head), "http://h:1/p%20q?a=1&b");
	assert_string_equal(http_head_path(head), "/p%20q");
	assert_string_equal(http_head_query(head), "a=1&b");
	assert_string_equal(http_head_header(head, "X-a"), "one");
	assert_null(http_head_header(head, "X"));
	assert_int_equal(http_head_minor_version(head), 1);
	assert_false(head->keep_alive);
	http_head_free(head);
	evbuffer_free(body);
}

static void
test_options_may_be_of_the_server_as_a_whole(void **state)
{
	static const struct {
		const char *path;
		struct text text;
	} cases[] = {
		{ "*", TEXT("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n") },
		{ "*", TEXT("OPTIONS http://x:8001 HTTP/1.1\r\nHost: x\r\n\r\n") },
		{ "/", TEXT("OPTIONS http://x/ HTTP/1.1\r\nHost: x\r\n\r\n") },
		{ "/", TEXT("GET http://x HTTP/1.1\r\nHost: x\r\n\r\n") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct evbuffer *body = evbuffer_new();
		struct http_head *head;

		assert_int_equal(parse_cut(HTTP_SIDE_REQUEST, &cases[i].text, cases[i].text.len, &head, body), 200);
		assert_string_equal(http_head_path(head), cases[i].path);
		http_head_free(head);
		evbuffer_free(body);
	}
}

static void
test_keep_alive_follows_version_and_connection(void **state)
{
	static const struct {
		bool keep;
		struct text text;
	} cases[] = {
		{ true, TEXT(GET "\r\n") },
		{ false, TEXT(GET "Connection: close\r\n\r\n") },
		{ false, TEXT(GET "Connection: keep-alive, close\r\n\r\n") },
		{ true, TEXT(GET "Connection: closed\r\n\r\n") },
		{ false, TEXT("GET / HTTP/1.0\r\n\r\n") },
		{ true, TEXT("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct evbuffer *body = evbuffer_new();
		struct http_head *head;

		assert_int_equal(parse_cut(HTTP_SIDE_REQUEST, &cases[i].text, cases[i].text.len, &head, body), 200);
		assert_int_equal(head->keep_alive, cases[i].keep);
		http_head_free(head);
		evbuffer_free(body);
	}
}

/* Pushes the same filler again and again behind a prefix, and returns the refusal. */
static int
flood(const char *prefix, const char *filler, size_t *ret_pushed)
{
	struct http_parser parser;
	struct evbuffer *in = evbuffer_new();
	struct evbuffer *body = evbuffer_new();
	struct http_head *head = NULL;
	int rc = 0;

	http_parser_init(&parser, HTTP_SIDE_REQUEST, MAX_HEAD);
	evbuffer_add(in, prefix, strlen(prefix));
	for (*ret_pushed = 0; rc == 0 && *ret_pushed < 1000000; *ret_pushed += strlen(filler)) {
		if (head == NULL)
			rc = http_parser_head(&parser, in, &head);
		if (head != NULL)
			rc = http_parser_body(&parser, in, body, SIZE_MAX);
		evbuffer_add(in, filler, strlen(filler));
	}
	http_head_free(head);
	evbuffer_free(in);
	evbuffer_free(body);
	return rc < 0 ? parser.status : rc;
}

static void
test_every_part_is_bounded(void **state)
{
	size_t pushed;

	(void)state;
	assert_int_equal(flood("GET /", "a", &pushed), 414);
	assert_true(pushed < MAX_HEAD + 100);
	assert_int_equal(flood(GET "A: ", "a", &pushed), 431);
	assert_true(pushed < MAX_HEAD + 100);
	assert_int_equal(flood(GET "A: b\r\n", "A:b\r\n", &pushed), 431);
	assert_int_equal(flood(CHUNKED, "1", &pushed), 400);
	assert_true(pushed < HTTP_MAX_CHUNK_LINE + 100);
	assert_int_equal(flood(CHUNKED "1;", "x", &pushed), 400);
	assert_true(pushed < HTTP_MAX_CHUNK_LINE + 100);
	assert_int_equal(flood(CHUNKED, "1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\nx\r\n", &pushed), 400);
	assert_true(pushed < 2 * HTTP_MAX_EXTENSIONS);
	assert_int_equal(flood(CHUNKED "0\r\nA: ", "a", &pushed), 431);
	assert_true(pushed < HTTP_MAX_TRAILER + 100);
	assert_int_equal(flood(CHUNKED "0\r\n", "A: b\r\n", &pushed), 431);
	assert_true(pushed < HTTP_MAX_TRAILER + 100);
}

static void
test_what_is_wrong_behind_the_bound_is_not_looked_at(void **state)
{
	char text[MAX_HEAD + 500];
	struct text all = { text, sizeof text };

	(void)state;
	memset(text, 'a', sizeof text);
	memcpy(text, "GET /", 5);
	text[sizeof text - 1] = '\n';
	assert_int_equal(parse(HTTP_SIDE_REQUEST, &all), 414);
}

static void
test_too_many_fields_are_431(void **state)
{
	char text[MAX_HEAD] = GET;
	struct text all = { text, 0 };

	(void)state;
	for (int i = 1; i < HTTP_MAX_FIELDS; i++)
		strcat(text, "A: b\r\n");
	strcat(text, "\r\n");
	all.len = strlen(text);
	assert_int_equal(parse(HTTP_SIDE_REQUEST, &all), 200);
	strcpy(text + all.len - 2, "A: b\r\n\r\n");
	all.len = strlen(text);
	assert_int_equal(parse(HTTP_SIDE_REQUEST, &all), 431);
}

static void
test_percent_decode_never_guesses(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(http_percent_decode("a%20b+%C3%a4", 12, &text), 0);
	assert_string_equal(text, "a b+\xc3\xa4");
	free(text);
	assert_int_equal(http_percent_decode("a%41zz", 4, &text), 0);
	assert_string_equal(text, "aA");
	free(text);
	assert_int_equal(http_percent_decode("%", 1, &text), -1);
	assert_int_equal(http_percent_decode("%4", 2, &text), -1);
	assert_int_equal(http_percent_decode("%4g", 3, &text), -1);
	assert_int_equal(http_percent_decode("a%00", 4, &text), -1);
}

static void
test_query_get(void **state)
{
	char *value;

	(void)state;
	assert_int_equal(http_query_get("a=1&b=x+y%26&c", "b", &value), 1);
	assert_string_equal(value, "x y&");
	free(value);
	assert_int_equal(http_query_get("a=1&b=x&c", "c", &value), 1);
	assert_string_equal(value, "");
	free(value);
	assert_int_equal(http_query_get("%61=1=2", "a", &value), 1);
	assert_string_equal(value, "1=2");
	free(value);
	assert_int_equal(http_query_get("", "a", &value), 0);
	assert_int_equal(http_query_get("ab=1&&=", "a", &value), 0);
	assert_int_equal(http_query_get("a=%zz", "a", &value), -1);
	assert_int_equal(http_query_get("a=1&b=2&a=1", "a", &value), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_are_judged_the_same_at_every_cut),
		cmocka_unit_test(test_responses_are_judged_the_same_at_every_cut),
		cmocka_unit_test(test_bodies_come_out_whole_at_every_cut),
		cmocka_unit_test(test_head_tells_its_parts),
		cmocka_unit_test(test_options_may_be_of_the_server_as_a_whole),
		cmocka_unit_test(test_keep_alive_follows_version_and_connection),
		cmocka_unit_test(test_every_part_is_bounded),
		cmocka_unit_test(test_what_is_wrong_behind_the_bound_is_not_looked_at),
		cmocka_unit_test(test_too_many_fields_are_431),
		cmocka_unit_test(test_percent_decode_never_guesses),
		cmocka_unit_test(test_query_get),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
