/* client_side.c - the WebSocket of a terminal's client: its handshake, and its messages. */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"
#include "gateway/message.h"
#include "master/role.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SMALL = 64 * 1024 /* bytes that a message may have whatever else is held */ };

/* --- the handshake --- */

/* Which terminal is this? The door has written its number into the request. */
static int
on_handshake(struct lws *wsi)
{
	static const char header[] = "x-orchard-terminal:";
	struct gateway *gateway = lws_context_user(lws_get_context(wsi));
	struct terminal *terminal;
	char number[24];

	if (lws_hdr_custom_copy(wsi, number, sizeof number, header, sizeof header - 1) <= 0)
		return 1;
	terminal = terminal_find(gateway, strtoull(number, NULL, 10));
	if (terminal == NULL || terminal->client.wsi != NULL)
		return 1;
	terminal->client.wsi = wsi;
	lws_set_opaque_user_data(wsi, terminal);
	return 0;
}

static int
on_answer(struct lws *wsi, struct terminal *terminal, struct lws_process_html_args *args)
{
	const struct terminal_offer *offer = &terminal->offer;
	unsigned char **p = (unsigned char **)&args->p, *end = (unsigned char *)args->p + args->max_len;

	if (*offer->protocol != '\0' &&
		side_add_header(wsi, "sec-websocket-protocol:", offer->protocol, p, end) != 0)
		return 1;
	return side_add_header(wsi, "x-request-id:", offer->request_id, p, end);
}

static void
on_established(struct terminal *terminal)
{
	struct log_ctx ctx = terminal_log_ctx(terminal);
	struct side *client = &terminal->client;
	int64_t now = clock_boot_ms();

	explicit_bzero(terminal->offer.protocol, sizeof terminal->offer.protocol); /* may hold a key */
	client->open = true;
	client->heard_ms = now;
	client->ping_due_ms = now + terminal->gateway->env->config->terminal_ping_seconds * 1000;
	terminal->opened_ms = now;
	terminal->counted = true;
	terminal_count(terminal, METRIC_TERMINALS_TOTAL, 1);
	sandbox_note_open(terminal);
	log_write(LOG_LEVEL_INFO, &ctx, "terminal opened%s%s", *terminal->offer.session != '\0' ? ", session " : "",
		terminal->offer.session);
	if (*terminal->offer.session == '\0')
		return;
	terminal->detach = true;
	agent_side_connect(terminal);
}

/* --- messages --- */

static void
pass_stdin(struct terminal *terminal, const struct message *message)
{
	typed_add(terminal, message->data, message->len);
	terminal_count(terminal, METRIC_TERMINAL_INPUT_BYTES, (int64_t)message->len);
}

static void
on_first_message(struct terminal *terminal, struct message *message)
{
	if (message->kind != MESSAGE_INIT) {
		terminal_end(terminal, CLOSE_BAD_INIT, "the first message must be init",
			"the first message must be init");
		return;
	}
	if (strlen(message->text) > TERMINAL_INIT_BYTES) {
		terminal_end(terminal, CLOSE_BAD_INIT, "init is too long", "init is too long: it may have 1 MiB");
		return;
	}
	terminal->detach = message->detach;
	terminal->init = STEAL_PTR(message->text);
	agent_side_connect(terminal);
}

static void
on_message(struct terminal *terminal, struct message *message)
{
	switch (message->kind) {
	case MESSAGE_INIT:
		side_push(&terminal->client, message_error("init: this terminal has begun already"));
		break;
	case MESSAGE_STDIN:
		pass_stdin(terminal, message);
		break;
	case MESSAGE_SIGNAL:
	case MESSAGE_RESIZE:
	case MESSAGE_CLOSE:
		side_push(&terminal->agent, message_text(message->text));
		break;
	}
}

static void
on_text(struct terminal *terminal, const char *text, size_t len)
{
	struct message message;
	struct err err;

	if (message_read(text, len, &message, &err) < 0) {
		if (terminal->connecting)
			side_push(&terminal->client, message_error(err.msg));
		else
			terminal_end(terminal, CLOSE_BAD_INIT, "bad init", err.msg);
		return;
	}
	if (terminal->connecting)
		on_message(terminal, &message);
	else
		on_first_message(terminal, &message);
	message_fini(&message);
}

static void
on_receive(struct terminal *terminal, const void *in, size_t len)
{
	const struct config *config = terminal->gateway->env->config;
	struct side *client = &terminal->client;

	side_heard(client);
	if (client->closing)
		return;
	if (lws_frame_is_binary(client->wsi)) {
		terminal_end(terminal, CLOSE_UNSUPPORTED, "messages are text",
			"messages are text, with bytes in base64");
		return;
	}
	if (client->in.len > MESSAGE_SMALL && terminal->gateway->held > (size_t)config->terminal_memory_bytes) {
		terminal_end(
			terminal, CLOSE_LATER, "too much is on its way", "too much is on its way; try again later");
		return;
	}
	switch (side_collect(client, in, len, (size_t)config->terminal_message_bytes)) {
	case 0:
		break;
	case 1:
		on_text(terminal, client->in.text, client->in.len);
		side_collected(client);
		break;
	default:
		terminal_end(terminal, CLOSE_TOO_LARGE, "the message is too long",
			"the message is too long; send input in pieces");
		break;
	}
}

/* libwebsockets has answered some wrong codes with 1002 already. */
static int
on_close_frame(struct terminal *terminal, const unsigned char *in, size_t len)
{
	static const char words[] = "bad close code";
	struct side *client = &terminal->client;
	int code = len >= 2 ? in[0] << 8 | in[1] : CLOSE_NORMAL;
	bool wrong = len == 1 || code >= 5000;

	if (wrong) {
		lws_close_reason(client->wsi, LWS_CLOSE_STATUS_PROTOCOL_ERR, (unsigned char *)(uintptr_t)words,
			sizeof words - 1);
		code = CLOSE_PROTOCOL;
	}
	if (!client->closing) {
		client->code = code;
		snprintf(client->reason, sizeof client->reason, "the client left");
		client->closing = client->close_sent = true;
		client->progress_ms = clock_boot_ms();
	}
	side_close(&terminal->agent, CLOSE_GOING_AWAY, "the client left");
	return wrong ? -1 : 0;
}

/* Every WebSocket's end is told to the first protocol, whose ever it was. */
static void
on_destroyed(struct lws *wsi)
{
	struct terminal *terminal = lws_get_opaque_user_data(wsi);

	if (terminal == NULL)
		return;
	if (terminal->client.wsi == wsi)
		terminal_side_gone(&terminal->client);
	else if (terminal->agent.wsi == wsi)
		terminal_side_gone(&terminal->agent);
}

int
client_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct terminal *terminal;

	(void)user;
	switch (reason) {
	case LWS_CALLBACK_FILTER_PROTOCOL_CONNECTION:
		return on_handshake(wsi);
	case LWS_CALLBACK_WSI_DESTROY:
		on_destroyed(wsi);
		return 0;
	case LWS_CALLBACK_ADD_HEADERS:
	case LWS_CALLBACK_ESTABLISHED:
	case LWS_CALLBACK_RECEIVE:
	case LWS_CALLBACK_RECEIVE_PONG:
	case LWS_CALLBACK_SERVER_WRITEABLE:
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		terminal = lws_get_opaque_user_data(wsi);
		break;
	default:
		return 0;
	}
	if (terminal == NULL)
		return reason == LWS_CALLBACK_ADD_HEADERS ? 0 : -1;
	if (reason == LWS_CALLBACK_ADD_HEADERS)
		return on_answer(wsi, terminal, in);
	if (reason == LWS_CALLBACK_SERVER_WRITEABLE)
		return side_write(&terminal->client);
	if (reason == LWS_CALLBACK_WS_PEER_INITIATED_CLOSE)
		return on_close_frame(terminal, in, len);
	if (reason == LWS_CALLBACK_ESTABLISHED)
		on_established(terminal);
	else if (reason == LWS_CALLBACK_RECEIVE)
		on_receive(terminal, in, len);
	else
		side_heard(&terminal->client);
	return 0;
}
