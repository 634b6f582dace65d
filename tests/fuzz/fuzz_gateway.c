/*
 * fuzz_gateway.c - a client's WebSocket frames, read as JSON messages, and what the agent is told for them.
 *
 * What the gateway passes on the agent takes: it never tells a sandbox what that refuses. Words for the client are JSON
 * in UTF-8, whatever they are about. Each text is also read as if an agent had sent it.
 */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "agent/terminal/terminal_request.h"
#include "agent/terminal/ws_frame.h"
#include "base/err.h"
#include "base/json.h"
#include "base/text.h"
#include "gateway/message.h"
#include "gateway/outbox.h"

#include <event2/buffer.h>
#include <json-c/json.h>

enum { MAX_TEXT = 1 << 20, BINARY_PIECE = 4096 };

/* A frame for a client: one JSON object with a type. Takes it. */
static void
check_frame(struct frame *frame)
{
	const char *text = (const char *)frame_body(frame);
	AUTO_JSON struct json_object *body = NULL;
	struct err err;

	FUZZ_CHECK(!frame_is_binary(frame) && text_is_utf8(text, frame_len(frame)));
	body = json_parse(text, frame_len(frame), &err);
	FUZZ_CHECK(body != NULL && json_object_is_type(json_object_object_get(body, "type"), json_type_string));
	frame_free(frame);
}

static void
check_passed_on(const struct message *message)
{
	struct terminal_request request;
	struct terminal_message order;
	struct err err;

	if (message->kind == MESSAGE_STDIN) {
		FUZZ_CHECK(message->text == NULL && (message->len == 0 || message->data != NULL));
		return;
	}
	FUZZ_CHECK(message->data == NULL);
	if (message->kind == MESSAGE_INIT) {
		FUZZ_CHECK(terminal_request_read(message->text, strlen(message->text), &request, &err) == 0);
		FUZZ_CHECK(request.detach == message->detach);
		terminal_request_fini(&request);
	} else {
		FUZZ_CHECK(terminal_message_read(message->text, strlen(message->text), &order, &err) == 0);
	}
}

static void
check_text(const char *text, size_t len)
{
	struct agent_said said;
	struct message message;
	struct err err;

	if (message_read(text, len, &message, &err) == 0) {
		check_passed_on(&message);
		message_fini(&message);
	} else {
		check_frame(message_error(err.msg));
	}
	if (message_from_agent(text, len, &said, &err) == 0) {
		FUZZ_CHECK(said.window >= 0 && said.taken >= 0);
		FUZZ_CHECK((said.frame == NULL) == (said.word == AGENT_WORD_TAKEN));
		if (said.frame != NULL)
			check_frame(said.frame);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct evbuffer *in = evbuffer_new(), *binary = evbuffer_new();
	struct ws_reader reader;
	enum ws_event event;

	evbuffer_add(in, data, len);
	ws_reader_init(&reader, MAX_TEXT);
	while ((event = ws_reader_next(&reader, in, binary, BINARY_PIECE)) != WS_EVENT_NONE) {
		if (event == WS_EVENT_TEXT)
			check_text(reader.text, reader.text_len);
		if (event == WS_EVENT_BINARY)
			check_frame(message_output(evbuffer_pullup(binary, -1), evbuffer_get_length(binary)));
		evbuffer_drain(binary, evbuffer_get_length(binary));
	}
	ws_reader_fini(&reader);
	evbuffer_free(in);
	evbuffer_free(binary);
	return 0;
}
