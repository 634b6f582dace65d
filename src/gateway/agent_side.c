/* agent_side.c - the WebSocket to a sandbox's agent: docs/agent-protocol.md, GET /pty. */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"
#include "gateway/message.h"
#include "master/role.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 64 * 1024 };

/* --- the call --- */

/* "unix:/path" or "tcp:address:port" for libwebsockets, which takes IPv6 without brackets; false: it is neither. */
static bool
endpoint_read(const char *endpoint, struct lws_client_connect_info *info, char ret_address[SANDBOX_ENDPOINT_SIZE])
{
	char *colon;

	if (strncmp(endpoint, "unix:/", 6) == 0) {
		ret_address[0] = '+';
		strcpy(ret_address + 1, endpoint + 5);
	} else if (strncmp(endpoint, "tcp:", 4) == 0) {
		strcpy(ret_address, endpoint + (endpoint[4] == '[' ? 5 : 4));
		colon = strrchr(ret_address, ':');
		if (colon == NULL)
			return false;
		colon[colon > ret_address && colon[-1] == ']' ? -1 : 0] = '\0';
		info->port = atoi(colon + 1);
	} else {
		return false;
	}
	info->address = ret_address;
	return true;
}

static void
call(struct terminal *terminal)
{
	static const lws_retry_bo_t no_policy = { 0 }; /* pings are ours */
	const struct terminal_offer *offer = &terminal->offer;
	char address[SANDBOX_ENDPOINT_SIZE], path[112] = "/pty?counted=1";
	struct lws_client_connect_info info = {
		.context = terminal->gateway->context,
		.vhost = terminal->gateway->vhost,
		.path = path,
		.host = "agent",
		.local_protocol_name = "agent",
		.ietf_version_or_minus_one = -1,
		.opaque_user_data = terminal,
		.retry_and_idle_policy = &no_policy,
	};
	struct lws *wsi = NULL;

	if (*offer->session != '\0' && offer->offset >= 0)
		snprintf(path, sizeof path, "/pty?counted=1&session=%s&offset=%" PRId64, offer->session,
			offer->offset);
	else if (*offer->session != '\0')
		snprintf(path, sizeof path, "/pty?counted=1&session=%s", offer->session);
	if (endpoint_read(offer->endpoint, &info, address))
		wsi = lws_client_connect_via_info(&info);
	if (wsi != NULL)
		terminal->agent.wsi = wsi;
	else
		terminal_agent_lost(terminal);
}

static void
on_call(lws_sorted_usec_list_t *due)
{
	struct terminal *terminal = lws_container_of(due, struct terminal, call);

	terminal->agent.called = false;
	if (!terminal->over && !terminal->agent.closing)
		call(terminal);
}

/*
 * Not within a callback of the client's: libwebsockets writes the request where the bytes that it has read lie, of which
 * only the first message may have been handed over.
 */
void
agent_side_connect(struct terminal *terminal)
{
	terminal->connecting = terminal->agent.called = true;
	terminal_flow(terminal);
	lws_sul_schedule(terminal->gateway->context, 0, &terminal->call, on_call, 1);
}

static int
on_request_headers(struct lws *wsi, const struct terminal *terminal, unsigned char **p, size_t len)
{
	const struct terminal_offer *offer = &terminal->offer;
	unsigned char *end = *p + len;

	return side_add_header(wsi, "x-orchard-token:", offer->token, p, end) != 0 ||
		side_add_header(wsi, "x-orchard-sandbox:", offer->sandbox_uid, p, end) != 0 ||
		side_add_header(wsi, "x-request-id:", offer->request_id, p, end) != 0;
}

static void
on_established(struct terminal *terminal)
{
	struct side *agent = &terminal->agent;
	int64_t now = clock_boot_ms();

	agent->open = true;
	agent->heard_ms = now;
	agent->ping_due_ms = now + terminal->gateway->env->config->terminal_ping_seconds * 1000;
	if (terminal->init != NULL)
		side_push(agent, message_text(terminal->init));
	free(STEAL_PTR(terminal->init));
	terminal_flow(terminal);
}

/* What the agent answered instead of 101. */
static void
on_refused(struct terminal *terminal, unsigned int status)
{
	const char *words = NULL;

	if (status == 404 && *terminal->offer.session != '\0')
		words = "there is no such session to attach to";
	else if (status == 400 || status == 422)
		words = "the agent did not understand the request";
	if (words != NULL)
		terminal_end(terminal, CLOSE_BAD_INIT, words, words);
	else if (status == 503)
		terminal_end(terminal, CLOSE_LATER, "the sandbox has too many terminals",
			"the sandbox has too many terminals, or is ending");
	else
		terminal_agent_lost(terminal);
}

/* --- what it says --- */

static void
on_output(struct terminal *terminal, const void *in, size_t len)
{
	if (len == 0)
		return;
	terminal_count(terminal, METRIC_TERMINAL_OUTPUT_BYTES, (int64_t)len);
	side_push(&terminal->client, message_output(in, len));
}

static void
on_words(struct terminal *terminal, const void *in, size_t len)
{
	struct side *agent = &terminal->agent;
	struct log_ctx ctx = terminal_log_ctx(terminal);
	int rc = side_collect(agent, in, len, WORDS_MAX);
	struct agent_said said;
	struct err err;

	if (rc == 0)
		return;
	if (rc < 0)
		err_set(&err, ERR_TOO_LARGE, "the agent sent a message that is too long");
	else
		rc = message_from_agent(agent->in.text, agent->in.len, &said, &err);
	side_collected(agent);
	if (rc < 0) {
		log_write(LOG_LEVEL_WARN, &ctx, "terminal: %s", err.msg);
		terminal_end(terminal, CLOSE_INTERNAL, "internal error", "internal error");
		return;
	}
	if (said.word == AGENT_WORD_TAKEN) {
		typed_set_taken(terminal, said.taken);
		return;
	}
	if (said.word == AGENT_WORD_READY)
		typed_set_window(terminal, said.window);
	terminal->exited |= said.word == AGENT_WORD_EXIT;
	side_push(&terminal->client, said.frame);
}

static void
on_receive(struct terminal *terminal, const void *in, size_t len)
{
	side_heard(&terminal->agent);
	if (!lws_frame_is_binary(terminal->agent.wsi))
		on_words(terminal, in, len);
	else if (!terminal->agent.closing)
		on_output(terminal, in, len);
}

/* Its own codes and the normal one are the client's, too; anything else is a loss. */
static void
on_close_frame(struct terminal *terminal, const unsigned char *in, size_t len)
{
	int code = len >= 2 ? in[0] << 8 | in[1] : CLOSE_NORMAL;
	char reason[TERMINAL_REASON_SIZE] = "";

	if (len > 2)
		snprintf(reason, sizeof reason, "%.*s", (int)(len - 2), (const char *)in + 2);
	if (code == CLOSE_TOO_LARGE)
		terminal_end(terminal, CLOSE_BAD_INIT, "the agent takes no message that long", NULL);
	else if (code == CLOSE_NORMAL || (code >= 4000 && code < 5000))
		terminal_end(terminal, code, reason, NULL);
	else
		terminal_agent_lost(terminal);
}

int
agent_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct terminal *terminal = lws_get_opaque_user_data(wsi);

	(void)user;
	if (terminal == NULL)
		return 0;
	/* The first of these come while the connecting call has not returned yet. */
	if (terminal->agent.wsi == NULL)
		terminal->agent.wsi = wsi;
	if (terminal->agent.wsi != wsi)
		return 0;
	switch (reason) {
	case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
		return on_request_headers(wsi, terminal, in, len);
	case LWS_CALLBACK_CLIENT_ESTABLISHED:
		on_established(terminal);
		return 0;
	case LWS_CALLBACK_CLIENT_RECEIVE:
		on_receive(terminal, in, len);
		return 0;
	case LWS_CALLBACK_CLIENT_RECEIVE_PONG:
		side_heard(&terminal->agent);
		return 0;
	case LWS_CALLBACK_CLIENT_WRITEABLE:
		return side_write(&terminal->agent);
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		on_close_frame(terminal, in, len);
		return 0;
	case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
		on_refused(terminal, lws_http_client_http_response(wsi));
		return 0;
	case LWS_CALLBACK_CLIENT_CLOSED:
		terminal_agent_lost(terminal);
		return 0;
	default:
		return 0;
	}
}
