/* ws_frame.c - heads are gathered byte by byte, payloads unmasked as they come. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/ws_frame.h"

#include "base/alloc.h"
#include "base/text.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>

enum { WS_FIN = 0x80, WS_RESERVED = 0x70, WS_OPCODE = 0x0f, WS_MASKED = 0x80, WS_LENGTH = 0x7f, WS_CONTROL = 0x08 };
enum { WS_LENGTH_16 = 126, WS_LENGTH_64 = 127, WS_MASK_SIZE = 4 };
enum { WS_PIECE = 16 << 10, WS_TEXT_FIRST = 512, WS_TEXT_KEPT = 4096 };

void
ws_reader_init(struct ws_reader *reader, size_t max_text)
{
	*reader = (struct ws_reader){ .max_text = max_text };
}

void
ws_reader_fini(struct ws_reader *reader)
{
	free(reader->text);
	reader->text = NULL;
}

bool
ws_is_close_code(int code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static enum ws_event
ws_fault(struct ws_reader *reader, int code, const char *detail)
{
	reader->ended = true;
	reader->close_code = code;
	reader->detail = detail;
	return WS_EVENT_FAULT;
}

static size_t
ws_head_size(const struct ws_reader *reader)
{
	size_t length = reader->head[1] & WS_LENGTH;

	if (reader->head_len < 2)
		return 2;
	return 2 + (length == WS_LENGTH_16 ? 2 : length == WS_LENGTH_64 ? 8 : 0) + WS_MASK_SIZE;
}

static uint64_t
ws_number(const uint8_t *bytes, size_t count)
{
	uint64_t number = 0;

	for (size_t i = 0; i < count; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* As soon as the first two bytes are there: a fault must not wait for more. NULL: none. */
static const char *
ws_judge_start(const struct ws_reader *reader)
{
	unsigned opcode = reader->head[0] & WS_OPCODE;
	bool fin = (reader->head[0] & WS_FIN) != 0;

	if ((reader->head[0] & WS_RESERVED) != 0)
		return "a reserved bit is set, and no extension was agreed on";
	if ((reader->head[1] & WS_MASKED) == 0)
		return "frames of a client must be masked";
	if (opcode > WS_PONG || (opcode > WS_BINARY && opcode < WS_CLOSE))
		return "the opcode is reserved";
	if ((opcode & WS_CONTROL) != 0) {
		if (!fin)
			return "control frames must not be in fragments";
		if ((reader->head[1] & WS_LENGTH) > WS_MAX_CONTROL)
			return "control frames have at most 125 bytes";
		return NULL;
	}
	if (opcode == WS_CONTINUATION && !reader->in_message)
		return "there is no message to continue";
	if (opcode != WS_CONTINUATION && reader->in_message)
		return "the message before has not ended";
	return NULL;
}

/* The head is whole: what frame is it? */
static enum ws_event
ws_begin_payload(struct ws_reader *reader)
{
	unsigned opcode = reader->head[0] & WS_OPCODE;
	unsigned length = reader->head[1] & WS_LENGTH;

	reader->at = 0;
	reader->len = length;
	if (length == WS_LENGTH_16)
		reader->len = ws_number(reader->head + 2, 2);
	else if (length == WS_LENGTH_64)
		reader->len = ws_number(reader->head + 2, 8);
	if ((length == WS_LENGTH_16 && reader->len < WS_LENGTH_16) ||
		(length == WS_LENGTH_64 && (reader->len <= UINT16_MAX || reader->len > INT64_MAX)))
		return ws_fault(reader, WS_CLOSE_PROTOCOL, "the length is not in its shortest form");
	if ((opcode & WS_CONTROL) != 0) {
		reader->control_len = 0;
	} else if (opcode != WS_CONTINUATION) {
		reader->opcode = (enum ws_opcode)opcode;
		reader->in_message = true;
		reader->text_len = reader->checked = 0;
	}
	if ((opcode & WS_CONTROL) == 0 && reader->opcode == WS_TEXT &&
		reader->len > reader->max_text - reader->text_len)
		return ws_fault(reader, WS_CLOSE_TOO_LARGE, "the message is too large");
	reader->in_payload = true;
	return WS_EVENT_NONE;
}

/* False: more bytes are needed. A fault is in *ret_event. */
static bool
ws_take_head(struct ws_reader *reader, struct evbuffer *in, enum ws_event *ret_event)
{
	for (;;) {
		size_t wanted = ws_head_size(reader) - reader->head_len;
		int got = evbuffer_remove(in, reader->head + reader->head_len, wanted);
		bool was_started = reader->head_len >= 2;
		const char *why;

		reader->head_len += got > 0 ? (size_t)got : 0;
		if (!was_started && reader->head_len >= 2 && (why = ws_judge_start(reader)) != NULL) {
			*ret_event = ws_fault(reader, WS_CLOSE_PROTOCOL, why);
			return true;
		}
		if (reader->head_len == ws_head_size(reader)) {
			*ret_event = ws_begin_payload(reader);
			return true;
		}
		if (got <= 0 || (size_t)got < wanted)
			return false;
	}
}

static void
ws_unmask(const struct ws_reader *reader, uint8_t *bytes, size_t len)
{
	const uint8_t *mask = reader->head + reader->head_len - WS_MASK_SIZE;

	for (size_t i = 0; i < len; i++)
		bytes[i] ^= mask[(reader->at + i) % WS_MASK_SIZE];
}

/* At most max bytes of the payload, unmasked; the count. */
static size_t
ws_take_payload(struct ws_reader *reader, struct evbuffer *in, uint8_t *bytes, size_t max)
{
	uint64_t left = reader->len - reader->at;
	int got = evbuffer_remove(in, bytes, left < max ? (size_t)left : max);

	if (got <= 0)
		return 0;
	ws_unmask(reader, bytes, (size_t)got);
	reader->at += (uint64_t)got;
	return (size_t)got;
}

static bool
ws_payload_ended(struct ws_reader *reader)
{
	if (reader->at < reader->len)
		return false;
	reader->in_payload = false;
	reader->head_len = 0;
	return true;
}

static enum ws_event
ws_end_close(struct ws_reader *reader)
{
	reader->ended = true;
	if (reader->control_len == 0) {
		reader->close_code = WS_CLOSE_NO_CODE;
		return WS_EVENT_CLOSE;
	}
	reader->close_code = reader->control_len < 2 ? 0 : (int)ws_number(reader->control, 2);
	if (!ws_is_close_code(reader->close_code))
		return ws_fault(reader, WS_CLOSE_PROTOCOL, "the close code is not one to be sent");
	if (reader->control_len > 2 && !text_is_utf8(reader->control + 2, reader->control_len - 2))
		return ws_fault(reader, WS_CLOSE_NOT_TEXT, "the reason of a close must be UTF-8");
	return WS_EVENT_CLOSE;
}

static enum ws_event
ws_step_control(struct ws_reader *reader, struct evbuffer *in)
{
	unsigned opcode = reader->head[0] & WS_OPCODE;

	reader->control_len += ws_take_payload(
		reader, in, reader->control + reader->control_len, WS_MAX_CONTROL - reader->control_len);
	if (!ws_payload_ended(reader))
		return WS_EVENT_NONE;
	if (opcode == WS_CLOSE)
		return ws_end_close(reader);
	return opcode == WS_PING ? WS_EVENT_PING : WS_EVENT_PONG;
}

/* Only whole characters are judged; the beginning of one at the end waits for the rest. */
static bool
ws_check_text(struct ws_reader *reader)
{
	const char *fresh = reader->text + reader->checked;
	size_t whole = text_utf8_whole(fresh, reader->text_len - reader->checked);

	reader->checked += whole;
	return whole == 0 || text_is_utf8(fresh, whole);
}

static enum ws_event
ws_step_text(struct ws_reader *reader, struct evbuffer *in, bool fin)
{
	size_t size = reader->text_size, wanted = reader->text_len + evbuffer_get_length(in) + 1;

	if (size < wanted) {
		size = size == 0 ? WS_TEXT_FIRST : size;
		while (size < wanted && size <= reader->max_text)
			size *= 2;
		reader->text = alloc_resize(reader->text, size);
		reader->text_size = size;
	}
	reader->text_len += ws_take_payload(
		reader, in, (uint8_t *)reader->text + reader->text_len, size - reader->text_len - 1);
	reader->text[reader->text_len] = '\0';
	if (!ws_check_text(reader))
		return ws_fault(reader, WS_CLOSE_NOT_TEXT, "text must be UTF-8");
	if (!ws_payload_ended(reader) || !fin)
		return WS_EVENT_NONE;
	reader->in_message = false;
	if (reader->checked < reader->text_len)
		return ws_fault(reader, WS_CLOSE_NOT_TEXT, "text must be UTF-8");
	return WS_EVENT_TEXT;
}

static enum ws_event
ws_step_binary(struct ws_reader *reader, struct evbuffer *in, struct evbuffer *binary, size_t max)
{
	uint8_t piece[WS_PIECE];
	size_t got = ws_take_payload(reader, in, piece, max < sizeof piece ? max : sizeof piece);

	if (got > 0 && evbuffer_add(binary, piece, got) < 0)
		abort();
	if (ws_payload_ended(reader) && (reader->head[0] & WS_FIN) != 0)
		reader->in_message = false;
	return got > 0 ? WS_EVENT_BINARY : WS_EVENT_NONE;
}

enum ws_event
ws_reader_next(struct ws_reader *reader, struct evbuffer *in, struct evbuffer *binary, size_t max)
{
	enum ws_event event = WS_EVENT_NONE;

	if (!reader->in_message && reader->text_size > WS_TEXT_KEPT) {
		free(reader->text);
		reader->text = NULL;
		reader->text_size = 0;
	}
	while (event == WS_EVENT_NONE && !reader->ended) {
		if (!reader->in_payload && !ws_take_head(reader, in, &event))
			return WS_EVENT_NONE;
		if (event != WS_EVENT_NONE)
			return event;
		if ((reader->head[0] & WS_CONTROL) != 0)
			event = ws_step_control(reader, in);
		else if (reader->opcode == WS_TEXT)
			event = ws_step_text(reader, in, (reader->head[0] & WS_FIN) != 0);
		else
			event = ws_step_binary(reader, in, binary, max);
		if (event == WS_EVENT_NONE && evbuffer_get_length(in) == 0 && reader->in_payload)
			return WS_EVENT_NONE;
	}
	return event;
}

void
ws_write(struct evbuffer *out, enum ws_opcode opcode, const void *data, size_t len)
{
	uint8_t head[WS_MAX_HEAD] = { (uint8_t)(WS_FIN | (unsigned)opcode) };
	size_t extra = len < WS_LENGTH_16 ? 0 : len <= UINT16_MAX ? 2 : 8;

	head[1] = (uint8_t)(extra == 0 ? len : extra == 2 ? WS_LENGTH_16 : WS_LENGTH_64);
	for (size_t i = 0; i < extra; i++)
		head[2 + i] = (uint8_t)((uint64_t)len >> 8 * (extra - 1 - i));
	if (evbuffer_add(out, head, 2 + extra) < 0 || (len > 0 && evbuffer_add(out, data, len) < 0))
		abort();
}

void
ws_write_close(struct evbuffer *out, int code, const char *reason)
{
	uint8_t payload[WS_MAX_CONTROL] = { (uint8_t)(code >> 8), (uint8_t)code };
	size_t len = strlen(reason);

	if (len > sizeof payload - 2)
		len = text_utf8_whole(reason, sizeof payload - 2);
	memcpy(payload + 2, reason, len);
	ws_write(out, WS_CLOSE, payload, len + 2);
}
