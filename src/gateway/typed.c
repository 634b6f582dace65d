/*
 * typed.c - what a client typed, until its program has room for it.
 *
 * A program that reads nothing must not keep a signal, a resize or a close from it. So no more input is sent than the
 * agent has room for, which goes on reading; the rest waits here, and what is not input goes past it.
 */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include "conf/config.h"
#include "master/role.h"

#include <string.h>

enum { FIRST_WINDOW = 64 * 1024 /* what every agent has room for; until it says how much it is */ };

void
typed_init(struct typed *typed)
{
	*typed = (struct typed){ .window = FIRST_WINDOW };
	outbox_init(&typed->waiting);
}

static bool
has_room(const struct typed *typed)
{
	int64_t len = (int64_t)frame_len(typed->waiting.head);

	return typed->window == 0 || typed->sent - typed->taken + len <= typed->window;
}

static void
pass_on(struct terminal *terminal)
{
	struct typed *typed = &terminal->typed;

	while (typed->waiting.head != NULL && has_room(typed)) {
		struct frame *frame = outbox_take(&typed->waiting);

		typed->sent += (int64_t)frame_len(frame);
		side_put(&terminal->agent, frame);
	}
	terminal_weigh(terminal);
	terminal_flow(terminal);
}

void
typed_add(struct terminal *terminal, const uint8_t *data, size_t len)
{
	if ((terminal->agent.wsi == NULL && !terminal->agent.called) || terminal->agent.closing)
		return;
	for (size_t at = 0; at < len; at += TERMINAL_PIECE) {
		size_t piece = len - at < TERMINAL_PIECE ? len - at : TERMINAL_PIECE;
		struct frame *frame = frame_create(true, piece);

		memcpy(frame_body(frame), data + at, piece);
		outbox_push(&terminal->typed.waiting, frame);
	}
	pass_on(terminal);
}

void
typed_set_window(struct terminal *terminal, int64_t window)
{
	terminal->typed.window = window;
	pass_on(terminal);
}

void
typed_set_taken(struct terminal *terminal, int64_t taken)
{
	if (taken > terminal->typed.taken)
		terminal->typed.taken = taken;
	pass_on(terminal);
}

/* A client is read on as long as there is memory for what it types, so that its other messages are found. */
bool
typed_is_full(const struct terminal *terminal)
{
	const struct gateway *gateway = terminal->gateway;
	bool scarce = gateway->held > (size_t)gateway->env->config->terminal_memory_bytes / 2;

	return side_is_over(&terminal->client, terminal->typed.waiting.bytes + terminal->agent.out.bytes,
		scarce ? TERMINAL_HIGH : TERMINAL_TYPED);
}
