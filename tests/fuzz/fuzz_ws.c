/*
 * fuzz_ws.c - any bytes of a client, cut anywhere and taken in pieces of any size, mean the same frames.
 *
 * The first byte chooses where the input is cut in two, the second how much binary is taken at once.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/ws_frame.h"

#include "base/text.h"

#include <event2/buffer.h>
#include <stdint.h>
#include <stdlib.h>

enum { MAX_TEXT = 1000, EVENTS = WS_EVENT_FAULT + 1 };

struct outcome {
	size_t events[EVENTS];
	uint64_t sum; /* of all bytes that came out, in their order */
	int close_code;
};

static void
outcome_add(struct outcome *outcome, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		outcome->sum = outcome->sum * 31 + ((const uint8_t *)bytes)[i] + 1;
}

static void
take(struct outcome *outcome, const struct ws_reader *reader, enum ws_event event, struct evbuffer *binary)
{
	size_t len = evbuffer_get_length(binary);

	if (event == WS_EVENT_TEXT && !text_is_utf8(reader->text, reader->text_len))
		abort();
	if (event == WS_EVENT_TEXT)
		outcome_add(outcome, reader->text, reader->text_len);
	if (event == WS_EVENT_PING || event == WS_EVENT_PONG || event == WS_EVENT_CLOSE)
		outcome_add(outcome, reader->control, reader->control_len);
	if (event == WS_EVENT_BINARY)
		outcome_add(outcome, evbuffer_pullup(binary, -1), len);
	else
		outcome->events[event]++;
	if (event == WS_EVENT_CLOSE || event == WS_EVENT_FAULT)
		outcome->close_code = reader->close_code;
	evbuffer_drain(binary, len);
}

static struct outcome
play(const uint8_t *data, size_t len, size_t cut, size_t max)
{
	struct evbuffer *in = evbuffer_new(), *binary = evbuffer_new();
	struct outcome outcome = { 0 };
	struct ws_reader reader;
	enum ws_event event;

	ws_reader_init(&reader, MAX_TEXT);
	for (int part = 0; part < 2; part++) {
		evbuffer_add(in, part == 0 ? data : data + cut, part == 0 ? cut : len - cut);
		while ((event = ws_reader_next(&reader, in, binary, max)) != WS_EVENT_NONE)
			take(&outcome, &reader, event, binary);
	}
	if (outcome.events[WS_EVENT_CLOSE] + outcome.events[WS_EVENT_FAULT] > 1)
		abort();
	ws_reader_fini(&reader);
	evbuffer_free(in);
	evbuffer_free(binary);
	return outcome;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct outcome whole, cut;

	if (len < 3)
		return 0;
	whole = play(data + 2, len - 2, len - 2, 1 << 16);
	cut = play(data + 2, len - 2, (size_t)data[0] * (len - 2) / 256, (size_t)data[1] + 1);
	if (whole.sum != cut.sum || whole.close_code != cut.close_code)
		abort();
	for (size_t i = 0; i < EVENTS; i++)
		if (whole.events[i] != cut.events[i])
			abort();
	return 0;
}
