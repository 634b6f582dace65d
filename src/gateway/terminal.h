/*
 * terminal.h - one terminal: a client's WebSocket and an agent's, and what is between them. Private to src/gateway.
 *
 * A side ends in one way: side_close() lets what waits be written, then sends the close frame; side_kill() does not
 * wait. A terminal is freed when both sides are gone. The agent is not read while the client has more than TERMINAL_HIGH
 * bytes to be written, the client not while more than TERMINAL_TYPED wait for its program: so a slow reader slows the
 * program and nothing grows.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_GATEWAY_TERMINAL_H
#define ORCHARD_GATEWAY_TERMINAL_H

#include "base/log.h"
#include "gateway/outbox.h"
#include "ipc/scoreboard.h"
#include "ipc/terminal_msg.h"

#include <libwebsockets.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct gateway;

enum {
	TERMINAL_HIGH = 256 * 1024, /* waiting to be written, over which the other side is not read */
	TERMINAL_FULL = 512 * 1024, /* over which the side itself is not read: those are answers to what it says */
	TERMINAL_TYPED = 4096 * 1024, /* of input that its program does not read */
	TERMINAL_PIECE = 16 * 1024, /* stdin in one frame, and how much of a frame is read at once */
	TERMINAL_INIT_BYTES = 1024 * 1024, /* as an agent takes it */
	TERMINAL_INIT_MS = 10000,
	TERMINAL_REASON_SIZE = 120 /* of a close frame */
};

enum terminal_close {
	CLOSE_NORMAL = 1000,
	CLOSE_GOING_AWAY = 1001,
	CLOSE_PROTOCOL = 1002,
	CLOSE_UNSUPPORTED = 1003,
	CLOSE_TOO_LARGE = 1009,
	CLOSE_RESTART = 1012,
	CLOSE_LATER = 1013,
	CLOSE_BAD_INIT = 4400,
	CLOSE_INTERNAL = 4500,
	CLOSE_AGENT_LOST = 4503
};

struct side {
	struct terminal *terminal;
	struct lws *wsi; /* NULL: not yet, or gone */
	bool called; /* there will be one in a moment */
	bool open; /* the WebSocket is established */
	bool resting; /* not read now */
	bool closing;
	bool close_sent;
	int code;
	char reason[TERMINAL_REASON_SIZE];
	struct outbox out;
	struct {
		char *text;
		size_t len, size;
	} in; /* a text message that is still coming */
	int64_t closing_ms; /* since when it is */
	int64_t progress_ms; /* closing: the last time something was written */
	int64_t heard_ms; /* a pong, or a message */
	int64_t pinged_ms;
	int64_t ping_due_ms;
	bool ping;
};

struct typed {
	struct outbox waiting;
	int64_t window; /* bytes that may be on their way to the program; 0: any */
	int64_t sent, taken;
};

struct terminal {
	TAILQ_ENTRY(terminal) link;
	struct gateway *gateway;
	uint64_t number;
	struct terminal_offer offer;
	struct side client, agent;
	struct typed typed;
	int64_t opened_ms;
	int64_t said_ms; /* in the sandbox's record */
	bool counted; /* there, and in the metrics */
	lws_sorted_usec_list_t call; /* when the agent is called */
	bool connecting; /* the agent was called; the client has said init, or attaches */
	char *init; /* text for the agent, until it is sent */
	bool detach; /* the session outlives its client */
	bool exited; /* the program's end was told */
	bool over; /* terminal_end was called */
	size_t held; /* bytes of this one in gateway->held */
};

TAILQ_HEAD(terminal_list, terminal);

struct gateway {
	struct role_env *env;
	struct lws_context *context;
	struct lws_vhost *vhost;
	struct lws *wakers[3]; /* signals, the master's life, the channel */
	lws_sorted_usec_list_t tick;
	struct terminal_list terminals;
	uint32_t count;
	uint32_t most;
	uint64_t last_number;
	size_t held; /* bytes of all terminals: half messages, and what waits to be written */
	bool refusing; /* takes no new ones */
	bool ending;
	bool stopped;
	int64_t deadline_ms; /* lingering: to end all; ending: to stop; 0: none */
};

/* --- terminal.c --- */
struct terminal *terminal_create(struct gateway *gateway, const struct terminal_offer *offer);
struct terminal *terminal_find(struct gateway *gateway, uint64_t number);
/* Both of its sides must be gone. */
void terminal_free(struct terminal *terminal);
/* One of its WebSockets is no more. */
void terminal_side_gone(struct side *side);
/* The client is told the code; with words also an error message. The agent's side ends, too. Only the first counts. */
void terminal_end(struct terminal *terminal, int code, const char *reason, const char *words);
/* The connection to the agent is gone or never came: says why, also that the sandbox was deleted. */
void terminal_agent_lost(struct terminal *terminal);
/* Reads those sides that may be read now. */
void terminal_flow(struct terminal *terminal);
/* After something was put in or taken out. */
void terminal_weigh(struct terminal *terminal);
void terminal_tick(struct terminal *terminal, int64_t now_ms);
struct log_ctx terminal_log_ctx(const struct terminal *terminal);
void terminal_count(const struct terminal *terminal, enum metric metric, int64_t n);

/* --- side.c --- */
void side_init(struct side *side, struct terminal *terminal);
void side_fini(struct side *side);
/* To the handshake being written at *p: 0, or it is full. name ends with a colon. */
int side_add_header(struct lws *wsi, const char *name, const char *value, unsigned char **p, unsigned char *end);
void side_push(struct side *side, struct frame *frame);
/* The same, even if the side is closing: in front of its close. */
void side_put(struct side *side, struct frame *frame);
void side_close(struct side *side, int code, const char *reason);
void side_kill(struct side *side);
/* Its turn to write: what the callback returns. */
int side_write(struct side *side);
void side_rest(struct side *side, bool rest);
/* Is it too much to read the side on? One that rests does so until little is left. */
bool side_is_over(const struct side *side, size_t bytes, size_t high);
void side_heard(struct side *side);
/* Pings when it is time; kills a side whose peer is gone or that does not take its last bytes. */
void side_tick(struct side *side, int64_t now_ms);
/* Adds a part of a text message: 1 it is whole (side->in), 0 not yet, -1 over max. */
int side_collect(struct side *side, const void *part, size_t len, size_t max);
void side_collected(struct side *side);

/* --- typed.c --- */
void typed_init(struct typed *typed);
void typed_add(struct terminal *terminal, const uint8_t *data, size_t len);
/* What the agent said: how much may be on its way, how much the program has taken. */
void typed_set_window(struct terminal *terminal, int64_t window);
void typed_set_taken(struct terminal *terminal, int64_t taken);
bool typed_is_full(const struct terminal *terminal);

/* --- client_side.c, agent_side.c --- */
int client_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);
int agent_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);
/* Calls the agent; the answer comes as events. */
void agent_side_connect(struct terminal *terminal);

/* --- sandbox_note.c: open terminals in the record of their sandbox --- */
void sandbox_note_open(const struct terminal *terminal);
void sandbox_note_end(const struct terminal *terminal);
/* False: the sandbox is gone. */
bool sandbox_note_again(const struct terminal *terminal);
/* Is it gone or going? Then in words why. */
bool sandbox_note_gone(const struct terminal *terminal, char *ret_words, size_t size);

/* --- door.c --- */
/* Takes what waits in the channel. */
void door_take(struct gateway *gateway);
/* The same, but refuses it. */
void door_refuse(struct gateway *gateway);

/* --- liveness.c --- */
/* True when the kernel knows that the peer of a TCP connection does not answer any more. */
bool liveness_is_gone(int fd, int64_t limit_ms);

#endif
