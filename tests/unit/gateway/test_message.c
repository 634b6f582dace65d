/* test_message.c - what a terminal's client may say, to the letter, and what it hears. */
/* SPDX-License-Identifier: MIT */
#include "gateway/message.h"

#include "base/err.h"
#include "gateway/outbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
test_what_agents_are_told(void **state)
{
	static const struct {
		const char *text;
		enum message_kind kind;
		const char *told;
	} rows[] = {
		{ "{\"type\":\"init\"}", MESSAGE_INIT, "{\"type\":\"init\",\"cmd\":null,\"rows\":24,\"cols\":80}" },
		{ "{\"type\":\"init\",\"cmd\":[\"sh\",\"-c\",\"\"],\"env\":{\"A\":\"=b\"},\"cwd\":\"/\",\"rows\":1,"
		  "\"cols\":65535,\"login_shell\":true,\"user\":\"u\",\"detach\":true,\"more\":[]}",
			MESSAGE_INIT,
			"{\"type\":\"init\",\"cmd\":[\"sh\",\"-c\",\"\"],\"env\":{\"A\":\"=b\"},\"cwd\":\"/"
			"\",\"rows\":1,"
			"\"cols\":65535,\"login_shell\":true,\"user\":\"u\",\"detach\":true}" },
		{ "{\"type\":\"init\",\"cmd\":null,\"env\":null,\"cwd\":null}", MESSAGE_INIT,
			"{\"type\":\"init\",\"cmd\":null,\"rows\":24,\"cols\":80}" },
		{ "{\"type\":\"signal\",\"sig\":\"QUIT\"}", MESSAGE_SIGNAL,
			"{\"type\":\"signal\",\"sig\":\"QUIT\"}" },
		{ "{\"type\":\"resize\",\"rows\":50,\"cols\":132}", MESSAGE_RESIZE,
			"{\"type\":\"resize\",\"rows\":50,\"cols\":132}" },
		{ " {\"type\":\"close\",\"x\":1} ", MESSAGE_CLOSE, "{\"type\":\"close\"}" },
	};
	struct message message;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (message_read(rows[i].text, strlen(rows[i].text), &message, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
		assert_int_equal(message.kind, rows[i].kind);
		assert_string_equal(message.text, rows[i].told);
		message_fini(&message);
	}
}

static void
test_stdin_is_bytes(void **state)
{
	static const char text[] = "{\"type\":\"stdin\",\"data\":\"AP9h\"}",
			  empty[] = "{\"type\":\"stdin\",\"data\":\"\"}";
	struct message message;
	struct err err;

	(void)state;
	assert_int_equal(message_read(text, sizeof text - 1, &message, &err), 0);
	assert_int_equal(message.kind, MESSAGE_STDIN);
	assert_int_equal(message.len, 3);
	assert_memory_equal(message.data,
		"\0\xff"
		"a",
		3);
	message_fini(&message);
	assert_int_equal(message_read(empty, sizeof empty - 1, &message, &err), 0);
	assert_int_equal(message.len, 0);
	message_fini(&message);
}

static void
test_what_is_wrong_is_told(void **state)
{
	static const struct {
		const char *text;
		const char *words; /* part of what is said */
	} rows[] = {
		{ "", "" },
		{ "null", "" },
		{ "[]", "a message is a JSON object" },
		{ "{}", "\"type\"" },
		{ "{\"type\":1}", "\"type\"" },
		{ "{\"type\":\"stdout\"}", "no message of type \"stdout\"" },
		{ "{\"type\":\"close\",\"type\":\"close\"}", "" },
		{ "{\"type\":\"close\"} x", "" },
		{ "{\"type\":\"close\",\"x\":\"\xff\"}", "" },
		{ "{\"type\":\"stdin\"}", "stdin: data: " },
		{ "{\"type\":\"stdin\",\"data\":1}", "stdin: data: " },
		{ "{\"type\":\"stdin\",\"data\":\"@@@@\"}", "base64" },
		{ "{\"type\":\"stdin\",\"data\":\"YQ\"}", "base64" },
		{ "{\"type\":\"stdin\",\"data\":\"YQ==YQ==\"}", "base64" },
		{ "{\"type\":\"signal\"}", "signal: sig: " },
		{ "{\"type\":\"signal\",\"sig\":\"FOO\"}", "one of TERM" },
		{ "{\"type\":\"signal\",\"sig\":\"SIGTERM\"}", "one of TERM" },
		{ "{\"type\":\"signal\",\"sig\":9}", "signal: sig: " },
		{ "{\"type\":\"resize\",\"rows\":1}", "resize: cols: " },
		{ "{\"type\":\"resize\",\"rows\":0,\"cols\":80}", "resize: rows: " },
		{ "{\"type\":\"resize\",\"rows\":-1,\"cols\":80}", "resize: rows: " },
		{ "{\"type\":\"resize\",\"rows\":70000,\"cols\":80}", "resize: rows: " },
		{ "{\"type\":\"resize\",\"rows\":\"x\",\"cols\":80}", "resize: rows: " },
		{ "{\"type\":\"resize\",\"rows\":1.5,\"cols\":80}", "resize: rows: " },
		{ "{\"type\":\"init\",\"rows\":0}", "init: rows: " },
		{ "{\"type\":\"init\",\"cols\":65536}", "init: cols: " },
		{ "{\"type\":\"init\",\"cmd\":[]}", "init: cmd: " },
		{ "{\"type\":\"init\",\"cmd\":[\"\"]}", "names no program" },
		{ "{\"type\":\"init\",\"cmd\":[1]}", "init: cmd: " },
		{ "{\"type\":\"init\",\"cmd\":\"bash\"}", "init: cmd: " },
		{ "{\"type\":\"init\",\"cmd\":[\"a\\u0000b\"]}", "without NUL" },
		{ "{\"type\":\"init\",\"env\":{\"A\":1}}", "init: env" },
		{ "{\"type\":\"init\",\"env\":{\"\":\"x\"}}", "init: env: " },
		{ "{\"type\":\"init\",\"env\":{\"A=B\":\"x\"}}", "init: env: " },
		{ "{\"type\":\"init\",\"env\":[]}", "init: env: " },
		{ "{\"type\":\"init\",\"cwd\":5}", "init: cwd: " },
		{ "{\"type\":\"init\",\"login_shell\":\"yes\"}", "init: login_shell: " },
		{ "{\"type\":\"init\",\"detach\":1}", "init: detach: " },
	};
	struct message message;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (message_read(rows[i].text, strlen(rows[i].text), &message, &err) == 0)
			fail_msg("taken: %s", rows[i].text);
		assert_int_equal(err.code, ERR_INVALID);
		if (strstr(err.msg, rows[i].words) == NULL)
			fail_msg("%s: %s", rows[i].text, err.msg);
	}
}

static void
expect_frame(struct frame *frame, const char *text)
{
	assert_false(frame_is_binary(frame));
	assert_int_equal(frame_len(frame), strlen(text));
	assert_memory_equal(frame_body(frame), text, strlen(text));
	frame_free(frame);
}

static void
test_what_clients_are_told(void **state)
{
	(void)state;
	expect_frame(message_output("\0\xff"
				    "a",
			     3),
		"{\"type\":\"stdout\",\"data\":\"AP9h\"}");
	expect_frame(message_output("ab", 2), "{\"type\":\"stdout\",\"data\":\"YWI=\"}");
	expect_frame(message_error("say \"x\"\n"), "{\"type\":\"error\",\"message\":\"say \\\"x\\\"\\n\"}");
}

static void
test_what_agents_say(void **state)
{
	static const char ready[] =
		"{\"type\":\"ready\",\"pid\":7,\"session\":\"0b0e7a52-6f3c-4c5b-9d0a-0123456789ab\","
		"\"offset\":3,\"window\":65536,\"secret\":\"x\"}";
	static const char *const wrong[] = { "", "[]", "{\"type\":\"stdin\"}", "{\"pid\":1}",
		"{\"type\":\"exit\"" };
	static const char taken[] = "{\"type\":\"taken\",\"bytes\":70000}";
	struct agent_said said;
	struct err err;

	(void)state;
	assert_int_equal(message_from_agent(ready, sizeof ready - 1, &said, &err), 0);
	assert_int_equal(said.word, AGENT_WORD_READY);
	assert_int_equal(said.window, 65536);
	expect_frame(said.frame,
		"{\"type\":\"ready\",\"pid\":7,\"session\":\"0b0e7a52-6f3c-4c5b-9d0a-0123456789ab\","
		"\"offset\":3}");
	assert_int_equal(message_from_agent("{\"type\":\"exit\",\"code\":-9}", 25, &said, &err), 0);
	assert_int_equal(said.word, AGENT_WORD_EXIT);
	assert_int_equal(said.window, 0);
	expect_frame(said.frame, "{\"type\":\"exit\",\"code\":-9}");
	assert_int_equal(message_from_agent(taken, sizeof taken - 1, &said, &err), 0);
	assert_int_equal(said.word, AGENT_WORD_TAKEN);
	assert_int_equal(said.taken, 70000);
	assert_null(said.frame);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(message_from_agent(wrong[i], strlen(wrong[i]), &said, &err), -1);
}

static void
test_frames_wait_in_order(void **state)
{
	struct outbox outbox;
	struct frame *frame;

	(void)state;
	outbox_init(&outbox);
	assert_null(outbox_take(&outbox));
	outbox_push(&outbox, message_text("one"));
	outbox_push(&outbox, frame_create(true, 100));
	assert_true(outbox.bytes >= 103);
	expect_frame(outbox_take(&outbox), "one");
	frame = outbox_take(&outbox);
	assert_true(frame_is_binary(frame));
	frame_free(frame);
	assert_int_equal(outbox.bytes, 0);
	outbox_push(&outbox, message_text("two"));
	outbox_fini(&outbox);
	assert_null(outbox_take(&outbox));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_agents_are_told),
		cmocka_unit_test(test_stdin_is_bytes),
		cmocka_unit_test(test_what_is_wrong_is_told),
		cmocka_unit_test(test_what_clients_are_told),
		cmocka_unit_test(test_what_agents_say),
		cmocka_unit_test(test_frames_wait_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
