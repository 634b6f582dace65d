/* test_ws_frame.c - what a client may send and what not, cut at every place; what is sent back. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/ws_frame.h"
#include "agent/terminal/ws_handshake.h"

#include "http/http_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/buffer.h>

enum { MAX_TEXT = 300 };

/* With the mask "\0\0\0\0" or, in some, one that changes bytes. */
#define ZERO           "\0\0\0\0"
#define BYTES(literal) (literal), sizeof(literal) - 1
#define HELLO_MASKED   "\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"

/*
 * What was seen, as text: "T(hello)", "B(..)" with all binary joined up to the next other event, "P()" ping,
 * "p()" pong, "C1000()", "F1002".
 */
static void
play(const char *bytes, size_t len, size_t cut, size_t max, char seen[4096])
{
	struct evbuffer *in = evbuffer_new(), *binary = evbuffer_new();
	struct ws_reader reader;
	char *at = seen;
	bool in_binary = false;

	*at = '\0';
	ws_reader_init(&reader, MAX_TEXT);
	for (int part = 0; part < 2; part++) {
		enum ws_event event;

		evbuffer_add(in, part == 0 ? bytes : bytes + cut, part == 0 ? cut : len - cut);
		while ((event = ws_reader_next(&reader, in, binary, max)) != WS_EVENT_NONE) {
			size_t got = evbuffer_get_length(binary);

			if (in_binary && event != WS_EVENT_BINARY)
				at += sprintf(at, ")");
			if (event == WS_EVENT_BINARY && !in_binary)
				at += sprintf(at, "B(");
			in_binary = event == WS_EVENT_BINARY;
			if (event == WS_EVENT_TEXT)
				at += sprintf(at, "T(%s)", reader.text);
			else if (event == WS_EVENT_PING || event == WS_EVENT_PONG)
				at += sprintf(at, "%c(%.*s)", event == WS_EVENT_PING ? 'P' : 'p',
					(int)reader.control_len, (char *)reader.control);
			else if (event == WS_EVENT_CLOSE)
				at += sprintf(at, "C%d(%.*s)", reader.close_code,
					reader.control_len < 2 ? 0 : (int)reader.control_len - 2,
					(char *)reader.control + 2);
			else if (event == WS_EVENT_FAULT)
				at += sprintf(at, "F%d", reader.close_code);
			assert_true(got <= max);
			at += evbuffer_remove(binary, at, got);
			*at = '\0';
		}
	}
	if (in_binary)
		sprintf(at, ")");
	ws_reader_fini(&reader);
	evbuffer_free(in);
	evbuffer_free(binary);
}

static void
expect(const char *bytes, size_t len, const char *wanted)
{
	char seen[4096];

	for (size_t cut = 0; cut <= len; cut++)
		for (size_t max = 1; max <= 4096; max *= 16) {
			play(bytes, len, cut, max, seen);
			if (strcmp(seen, wanted) != 0)
				fail_msg("%s, not %s, cut at %zu of %zu", seen, wanted, cut, len);
		}
}

static void
test_messages_come_whole_at_every_cut(void **state)
{
	(void)state;
	expect(BYTES("\x81\x85" HELLO_MASKED), "T(Hello)");
	expect(BYTES("\x81\x80" ZERO), "T()");
	expect(BYTES("\x82\x85" HELLO_MASKED), "B(Hello)");
	expect(BYTES("\x82\x80" ZERO), "");
	expect(BYTES("\x01\x83" ZERO "Hel\x80\x82" ZERO "lo"), "T(Hello)");
	expect(BYTES("\x01\x80" ZERO "\x00\x80" ZERO "\x80\x81" ZERO "x"), "T(x)");
	expect(BYTES("\x02\x83" ZERO "abc\x00\x81" ZERO "d\x80\x82" ZERO "ef"), "B(abcdef)");
	expect(BYTES("\x81\x82" ZERO "hi\x81\x82" ZERO "ho"), "T(hi)T(ho)");
	expect(BYTES("\x81\x84" ZERO "\xf0\x9f\x8c\xb3"), "T(\xf0\x9f\x8c\xb3)");
	expect(BYTES("\x01\x82" ZERO "\xf0\x9f\x80\x82" ZERO "\x8c\xb3"), "T(\xf0\x9f\x8c\xb3)");
}

static void
test_control_frames_come_between_fragments(void **state)
{
	(void)state;
	expect(BYTES("\x89\x85" HELLO_MASKED), "P(Hello)");
	expect(BYTES("\x8a\x80" ZERO), "p()");
	expect(BYTES("\x01\x81" ZERO "a\x89\x82" ZERO "hi\x80\x81" ZERO "b"), "P(hi)T(ab)");
	expect(BYTES("\x02\x81" ZERO "a\x89\x82" ZERO "hi\x80\x81" ZERO "b"), "B(a)P(hi)B(b)");
}

static void
test_lengths_of_each_form(void **state)
{
	static const size_t sizes[] = { 125, 126, 127, 200, 300 };
	char frame[512], wanted[512];

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		size_t len = sizes[i], at = 0;

		frame[at++] = '\x81';
		frame[at++] = (char)(0x80 | (len < 126 ? len : 126));
		if (len >= 126) {
			frame[at++] = (char)(len >> 8);
			frame[at++] = (char)len;
		}
		memset(frame + at, 0, 4);
		memset(frame + at + 4, 'x', len);
		sprintf(wanted, "T(%.*s)", (int)len, frame + at + 4);
		expect(frame, at + 4 + len, wanted);
	}
}

static void
test_large_binary_frames_stream(void **state)
{
	static char payload[70000], seen[4096];
	struct evbuffer *in = evbuffer_new(), *binary = evbuffer_new();
	struct ws_reader reader;
	size_t got = 0;

	(void)state;
	memset(payload, 'x', sizeof payload);
	ws_reader_init(&reader, MAX_TEXT);
	evbuffer_add(in, BYTES("\x82\xff\0\0\0\0\0\x01\x11\x70\1\2\3\4"));
	evbuffer_add(in, payload, sizeof payload);
	while (ws_reader_next(&reader, in, binary, 4096) == WS_EVENT_BINARY) {
		assert_true(evbuffer_get_length(binary) <= 4096);
		got += (size_t)evbuffer_remove(binary, seen, sizeof seen);
		assert_int_equal(seen[0], 'x' ^ 1);
	}
	assert_int_equal(got, sizeof payload);
	ws_reader_fini(&reader);
	evbuffer_free(in);
	evbuffer_free(binary);
}

static void
test_close_codes(void **state)
{
	static const struct {
		int code;
		const char *wanted;
	} cases[] = {
		{ 1000, "C1000(bye)" },
		{ 1001, "C1001(bye)" },
		{ 1003, "C1003(bye)" },
		{ 1007, "C1007(bye)" },
		{ 1011, "C1011(bye)" },
		{ 1012, "C1012(bye)" },
		{ 1014, "C1014(bye)" },
		{ 3000, "C3000(bye)" },
		{ 4999, "C4999(bye)" },
		{ 0, "F1002" },
		{ 999, "F1002" },
		{ 1004, "F1002" },
		{ 1005, "F1002" },
		{ 1006, "F1002" },
		{ 1015, "F1002" },
		{ 1016, "F1002" },
		{ 2999, "F1002" },
		{ 5000, "F1002" },
		{ 65535, "F1002" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char frame[] = "\x88\x85" ZERO "..bye";

		frame[6] = (char)(cases[i].code >> 8);
		frame[7] = (char)cases[i].code;
		expect(frame, sizeof frame - 1, cases[i].wanted);
	}
	expect(BYTES("\x88\x80" ZERO), "C1005()");
	expect(BYTES("\x88\x82" ZERO "\x03\xe8"), "C1000()");
	/* nothing behind it counts */
	expect(BYTES("\x88\x80" ZERO "\x81\x82" ZERO "hi"), "C1005()");
}

static void
test_what_is_forbidden_ends_it(void **state)
{
	(void)state;
	expect(BYTES("\x81\x05Hello"), "F1002"); /* no mask */
	expect(BYTES("\x89\x00"), "F1002");
	expect(BYTES("\xc1\x80" ZERO), "F1002"); /* reserved bits */
	expect(BYTES("\xa1\x80" ZERO), "F1002");
	expect(BYTES("\x91\x80" ZERO), "F1002");
	expect(BYTES("\x83\x80" ZERO), "F1002"); /* reserved opcodes */
	expect(BYTES("\x87\x80" ZERO), "F1002");
	expect(BYTES("\x8b\x80" ZERO), "F1002");
	expect(BYTES("\x8f\x80" ZERO), "F1002");
	expect(BYTES("\x09\x80" ZERO), "F1002"); /* control frames in fragments, and long ones */
	expect(BYTES("\x08\x80" ZERO), "F1002");
	expect(BYTES("\x89\xfe\x00\x7e" ZERO), "F1002");
	expect(BYTES("\x88\xfe\x00\x7e" ZERO), "F1002");
	expect(BYTES("\x80\x80" ZERO), "F1002"); /* continuations */
	expect(BYTES("\x00\x80" ZERO), "F1002");
	expect(BYTES("\x81\x80" ZERO "\x80\x80" ZERO), "T()F1002");
	expect(BYTES("\x01\x80" ZERO "\x81\x80" ZERO), "F1002");
	expect(BYTES("\x02\x81" ZERO "a\x82\x80" ZERO), "B(a)F1002");
	expect(BYTES("\x82\xfe\x00\x7d" ZERO), "F1002"); /* lengths not in their shortest form */
	expect(BYTES("\x82\xff\0\0\0\0\0\0\xff\xff" ZERO), "F1002");
	expect(BYTES("\x82\xff\x80\0\0\0\0\0\0\0" ZERO), "F1002");
	expect(BYTES("\x88\x81" ZERO "\x03"), "F1002"); /* half a close code */
}

static void
test_text_is_utf8(void **state)
{
	(void)state;
	expect(BYTES("\x81\x81" ZERO "\xff"), "F1007");
	expect(BYTES("\x81\x82" ZERO "\xc0\x80"), "F1007");
	expect(BYTES("\x81\x83" ZERO "\xed\xa0\x80"), "F1007");
	expect(BYTES("\x81\x84" ZERO "\xf4\x90\x80\x80"), "F1007");
	expect(BYTES("\x81\x83" ZERO "\xf0\x9f\x8c"), "F1007"); /* cut */
	expect(BYTES("\x01\x83" ZERO "a\xff"
		     "b\x80\x80" ZERO),
		"F1007"); /* before the message has ended */
	expect(BYTES("\x88\x83" ZERO "\x03\xe8\xff"), "F1007");
}

static void
test_text_has_a_limit(void **state)
{
	char frames[1024];
	size_t at = 0;

	(void)state;
	expect(BYTES("\x81\xfe\x01\x2d" ZERO), "F1009");
	expect(BYTES("\x81\xff\0\0\0\0\x40\0\0\0" ZERO), "F1009");
	memcpy(frames, "\x01\xfe\x01\x2c" ZERO, 8);
	at = 8;
	memset(frames + at, 'x', MAX_TEXT);
	at += MAX_TEXT;
	memcpy(frames + at, "\x80\x81" ZERO "y", 7);
	expect(frames, at + 7, "F1009");
}

static void
expect_written(const char *bytes, size_t len, enum ws_opcode opcode, const char *data, size_t data_len)
{
	struct evbuffer *out = evbuffer_new();

	ws_write(out, opcode, data, data_len);
	assert_int_equal(evbuffer_get_length(out), len + data_len);
	assert_memory_equal(evbuffer_pullup(out, -1), bytes, len);
	assert_memory_equal(evbuffer_pullup(out, -1) + len, data, data_len);
	evbuffer_free(out);
}

static void
test_frames_are_written_in_the_shortest_form(void **state)
{
	static const char data[65536];
	struct evbuffer *out = evbuffer_new();
	char reason[200];

	(void)state;
	expect_written(BYTES("\x81\x05"), WS_TEXT, "Hello", 5);
	expect_written(BYTES("\x8a\x00"), WS_PONG, "", 0);
	expect_written(BYTES("\x82\x7d"), WS_BINARY, data, 125);
	expect_written(BYTES("\x82\x7e\x00\x7e"), WS_BINARY, data, 126);
	expect_written(BYTES("\x82\x7e\xff\xff"), WS_BINARY, data, 65535);
	expect_written(BYTES("\x82\x7f\0\0\0\0\0\1\0\0"), WS_BINARY, data, 65536);
	memset(reason, 'x', sizeof reason);
	memcpy(reason + 122, "\xc3\xa9", 3); /* it would be cut in two */
	ws_write_close(out, 4400, reason);
	assert_int_equal(evbuffer_get_length(out), 2 + 2 + 122);
	assert_memory_equal(evbuffer_pullup(out, 4), "\x88\x7c\x11\x30", 4);
	evbuffer_free(out);
}

static int
handshake(const char *headers, char answer[512])
{
	struct evbuffer *in = evbuffer_new(), *out = evbuffer_new();
	struct http_parser parser;
	struct http_head *head = NULL;
	const char *why = NULL;
	int status;

	http_parser_init(&parser, HTTP_SIDE_REQUEST, 4096);
	evbuffer_add_printf(in, "GET /pty HTTP/1.1\r\nHost: x\r\n%s\r\n", headers);
	assert_int_equal(http_parser_head(&parser, in, &head), 1);
	status = ws_handshake_check(head, &why);
	if (status == 0)
		ws_handshake_answer(head, out);
	else
		assert_non_null(why);
	answer[evbuffer_remove(out, answer, 511)] = '\0';
	http_head_free(head);
	evbuffer_free(in);
	evbuffer_free(out);
	return status;
}

#define UPGRADE "Upgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define KEY     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static void
test_handshake(void **state)
{
	char answer[512];

	(void)state;
	assert_int_equal(handshake(UPGRADE VERSION KEY, answer), 0);
	assert_non_null(strstr(answer, "HTTP/1.1 101 "));
	assert_non_null(strstr(answer, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	assert_int_equal(handshake(VERSION KEY, answer), 426);
	assert_int_equal(handshake("Upgrade: h2c\r\nConnection: Upgrade\r\n" VERSION KEY, answer), 426);
	assert_int_equal(handshake(UPGRADE KEY, answer), 426);
	assert_int_equal(handshake(UPGRADE "Sec-WebSocket-Version: 8\r\n" KEY, answer), 426);
	assert_int_equal(handshake(UPGRADE VERSION VERSION KEY, answer), 426);
	assert_int_equal(handshake(UPGRADE VERSION, answer), 400);
	assert_int_equal(handshake(UPGRADE VERSION KEY KEY, answer), 400);
	assert_int_equal(handshake(UPGRADE VERSION "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n", answer), 400);
	assert_int_equal(handshake(UPGRADE VERSION "Sec-WebSocket-Key: dG9vIHNob3J0\r\n", answer), 400);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_come_whole_at_every_cut),
		cmocka_unit_test(test_control_frames_come_between_fragments),
		cmocka_unit_test(test_lengths_of_each_form),
		cmocka_unit_test(test_large_binary_frames_stream),
		cmocka_unit_test(test_close_codes),
		cmocka_unit_test(test_what_is_forbidden_ends_it),
		cmocka_unit_test(test_text_is_utf8),
		cmocka_unit_test(test_text_has_a_limit),
		cmocka_unit_test(test_frames_are_written_in_the_shortest_form),
		cmocka_unit_test(test_handshake),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
