/*
 * ws_frame.h - RFC 6455 frames of the server's side: bytes of a client in, frames out; no I/O.
 *
 * The reader is pulled: one call takes what makes one event out of the buffer,
 * so that whoever cannot pass on more stops calling. Text messages and control
 * frames come whole, binary ones in pieces as they arrive. What the RFC forbids
 * ends the reading for good: frames without a mask, reserved bits and opcodes,
 * lengths not in their shortest form, control frames that are long or in
 * fragments, continuations of nothing, invalid UTF-8, close codes nobody may send.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_WS_FRAME_H
#define ORCHARD_AGENT_WS_FRAME_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;

enum ws_opcode { WS_CONTINUATION = 0, WS_TEXT = 1, WS_BINARY = 2, WS_CLOSE = 8, WS_PING = 9, WS_PONG = 10 };

enum ws_close_code {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_NO_CODE = 1005, /* never sent: the peer's close had none */
	WS_CLOSE_NOT_TEXT = 1007,
	WS_CLOSE_TOO_LARGE = 1009
};

enum { WS_MAX_CONTROL = 125, WS_MAX_HEAD = 14 };

enum ws_event {
	WS_EVENT_NONE, /* more bytes are needed, or nothing is read any more */
	WS_EVENT_TEXT, /* text, text_len: valid until the next call */
	WS_EVENT_BINARY, /* bytes were added to binary */
	WS_EVENT_PING, /* control, control_len */
	WS_EVENT_PONG,
	WS_EVENT_CLOSE, /* close_code; the last event */
	WS_EVENT_FAULT /* close_code to answer with, and detail; the last event */
};

struct ws_reader {
	size_t max_text; /* of a message */
	char *text;
	size_t text_len, text_size;
	uint8_t control[WS_MAX_CONTROL];
	size_t control_len;
	int close_code;
	const char *detail; /* a literal */

	/* private */
	size_t checked; /* of text: whole characters of UTF-8 */
	uint8_t head[WS_MAX_HEAD];
	size_t head_len; /* of the current frame, as far as it came */
	bool in_payload;
	bool in_message;
	bool ended;
	enum ws_opcode opcode; /* of the frame; of the message for a continuation */
	uint64_t at, len; /* of the payload */
};

void ws_reader_init(struct ws_reader *reader, size_t max_text);
void ws_reader_fini(struct ws_reader *reader);
/* One event; at most max bytes (not 0) of binary at once. */
enum ws_event
ws_reader_next(struct ws_reader *reader, struct evbuffer *in, struct evbuffer *binary, size_t max) MUSTCHECK;

/* A whole frame, not masked. */
void ws_write(struct evbuffer *out, enum ws_opcode opcode, const void *data, size_t len);
/* reason is cut to what fits; it must be UTF-8. */
void ws_write_close(struct evbuffer *out, int code, const char *reason);
/* May stand in a close frame. */
bool ws_is_close_code(int code);

#endif
