/*
 * side.c - one WebSocket of a terminal: writing in turn, closing, pings.
 *
 * libwebsockets wants one frame for each time it says "writable", and nothing written outside of that.
 */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "conf/config.h"
#include "master/role.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
	LAST_BYTES_MS = 60000, /* for the peer to take something of what is left when a side closes */
	CLOSE_ACK_MS = 5000,
	HANG_UP_MS = 1000, /* for an agent to take what its client, which has left, had typed */
	COLLECT_FIRST = 4096
};

void
side_init(struct side *side, struct terminal *terminal)
{
	side->terminal = terminal;
	outbox_init(&side->out);
}

void
side_fini(struct side *side)
{
	outbox_fini(&side->out);
	free(side->in.text);
}

int
side_add_header(struct lws *wsi, const char *name, const char *value, unsigned char **p, unsigned char *end)
{
	return lws_add_http_header_by_name(
		wsi, (const unsigned char *)name, (const unsigned char *)value, (int)strlen(value), p, end);
}

void
side_put(struct side *side, struct frame *frame)
{
	if ((side->wsi == NULL && !side->called) || side->close_sent) {
		frame_free(frame);
		return;
	}
	outbox_push(&side->out, frame);
	terminal_weigh(side->terminal);
	if (side->open)
		lws_callback_on_writable(side->wsi);
	terminal_flow(side->terminal);
}

void
side_push(struct side *side, struct frame *frame)
{
	if (side->closing)
		frame_free(frame);
	else
		side_put(side, frame);
}

void
side_kill(struct side *side)
{
	if (side->wsi != NULL)
		lws_set_timeout(side->wsi, PENDING_TIMEOUT_USER_OK, LWS_TO_KILL_ASYNC);
}

void
side_close(struct side *side, int code, const char *reason)
{
	if (side->closing)
		return;
	side->closing = true;
	side->code = code;
	snprintf(side->reason, sizeof side->reason, "%s", reason);
	side->closing_ms = side->progress_ms = clock_boot_ms();
	if (side->open && side->wsi != NULL)
		lws_callback_on_writable(side->wsi);
	else
		side_kill(side);
}

bool
side_is_over(const struct side *side, size_t bytes, size_t high)
{
	return bytes > (side->resting ? high / 4 : high);
}

void
side_rest(struct side *side, bool rest)
{
	if (side->resting == rest || side->wsi == NULL || !side->open)
		return;
	side->resting = rest;
	side_heard(side); /* nothing can be heard of it meanwhile */
	lws_rx_flow_control(side->wsi, !rest);
}

static int
write_ping(struct side *side)
{
	/* An empty one would do, but libwebsockets keeps the answer to that for itself. */
	unsigned char bytes[LWS_PRE + 1] = { [LWS_PRE] = '.' };

	side->ping = false;
	if (lws_write(side->wsi, bytes + LWS_PRE, 1, LWS_WRITE_PING) < 0)
		return -1;
	if (side->out.head != NULL || side->closing)
		lws_callback_on_writable(side->wsi);
	return 0;
}

static int
write_frame(struct side *side)
{
	struct frame *frame = outbox_take(&side->out);
	size_t len = frame_len(frame);
	int written = lws_write(
		side->wsi, frame_body(frame), len, frame_is_binary(frame) ? LWS_WRITE_BINARY : LWS_WRITE_TEXT);

	frame_free(frame);
	if (written < 0 || (size_t)written < len)
		return -1;
	side->progress_ms = clock_boot_ms();
	terminal_weigh(side->terminal);
	terminal_flow(side->terminal);
	if (side->out.head != NULL || side->closing)
		lws_callback_on_writable(side->wsi);
	return 0;
}

/* Its last words go behind what was typed. */
static bool
side_may_close(const struct side *side)
{
	return side->closing && (side != &side->terminal->agent || side->terminal->typed.waiting.head == NULL);
}

int
side_write(struct side *side)
{
	if (side->close_sent)
		return 0;
	if (side->ping)
		return write_ping(side);
	if (side->out.head != NULL)
		return write_frame(side);
	if (!side_may_close(side))
		return 0;
	side->close_sent = true;
	side->progress_ms = clock_boot_ms();
	side->resting = false;
	lws_rx_flow_control(side->wsi, 1);
	lws_close_reason(
		side->wsi, (enum lws_close_status)side->code, (unsigned char *)side->reason, strlen(side->reason));
	return -1;
}

void
side_heard(struct side *side)
{
	side->heard_ms = clock_boot_ms();
}

/* Is it our doing that nothing is heard? Then only the kernel knows. */
static bool
side_is_held_up(const struct side *side)
{
	return side->resting || side->out.head != NULL || lws_partial_buffered(side->wsi);
}

static bool
side_is_gone(const struct side *side, int64_t now_ms)
{
	const struct config *config = side->terminal->gateway->env->config;
	int64_t limit_ms = config->terminal_ping_seconds * 2000 + 2000;

	if (liveness_is_gone(lws_get_socket_fd(side->wsi), limit_ms))
		return true;
	/* An agent may be busy with what it was sent; it lives on this host or answers its kernel's probes. */
	if (side == &side->terminal->agent || side_is_held_up(side))
		return false;
	return side->pinged_ms > side->heard_ms && now_ms - side->heard_ms > limit_ms;
}

/*
 * A program that does not read its input keeps what is queued from moving, and our close behind it: so the
 * connection's end is its hang-up. What outlives its client anyway may take its input as slowly as it likes.
 */
static bool
side_hangs_up(const struct side *side, int64_t now_ms)
{
	return side == &side->terminal->agent && !side->terminal->detach && now_ms - side->closing_ms > HANG_UP_MS;
}

/* A client that is not read is not seen to leave. What it typed for a session that outlives it is still read. */
static bool
side_left_unread(const struct side *side)
{
	struct pollfd pollfd = { .fd = lws_get_socket_fd(side->wsi), .events = POLLRDHUP };

	return side == &side->terminal->client && side->resting && !side->terminal->detach &&
		poll(&pollfd, 1, 0) == 1;
}

static bool
side_is_stuck(const struct side *side, int64_t now_ms)
{
	if (side->closing && side_hangs_up(side, now_ms))
		return true;
	return side->closing && now_ms - side->progress_ms > (side->close_sent ? CLOSE_ACK_MS : LAST_BYTES_MS);
}

void
side_tick(struct side *side, int64_t now_ms)
{
	if (side->wsi == NULL || !side->open)
		return;
	if (side_is_stuck(side, now_ms) || side_left_unread(side) ||
		(!side->close_sent && side_is_gone(side, now_ms))) {
		side_kill(side);
		return;
	}
	if (side->closing || now_ms < side->ping_due_ms)
		return;
	side->ping_due_ms = now_ms + side->terminal->gateway->env->config->terminal_ping_seconds * 1000;
	side->pinged_ms = now_ms;
	side->ping = true;
	lws_callback_on_writable(side->wsi);
}

int
side_collect(struct side *side, const void *part, size_t len, size_t max)
{
	size_t need = side->in.len + len;

	if (need > max)
		return -1;
	if (need + 1 > side->in.size) {
		side->in.size = need + 1 > side->in.size * 2 ? need + 1 : side->in.size * 2;
		if (side->in.size < COLLECT_FIRST)
			side->in.size = COLLECT_FIRST;
		side->in.text = alloc_resize(side->in.text, side->in.size);
		terminal_weigh(side->terminal);
	}
	memcpy(side->in.text + side->in.len, part, len);
	side->in.len = need;
	side->in.text[need] = '\0';
	return lws_is_final_fragment(side->wsi) && lws_remaining_packet_payload(side->wsi) == 0;
}

void
side_collected(struct side *side)
{
	side->in.len = 0;
	if (side->in.size <= COLLECT_FIRST)
		return;
	free(side->in.text);
	side->in.text = NULL;
	side->in.size = 0;
	terminal_weigh(side->terminal);
}
