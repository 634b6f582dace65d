/*
 * terminal_msg.h - a client's connection on its way from the worker that knows who it is to a gateway.
 *
 * One SOCK_SEQPACKET pair, made by the master before the first fork: every worker has the one end, every gateway the
 * other, and whichever gateway takes new terminals takes the next message. A message is an offer, the bytes that the
 * client has sent behind its request, and the connection itself. What waits in the channel outlives a gateway that
 * is killed. Nobody ever blocks on it: full is an answer.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_TERMINAL_MSG_H
#define ORCHARD_IPC_TERMINAL_MSG_H

#include "base/cleanup.h"
#include "base/id.h"
#include "ipc/sandbox_table.h"

#include <stddef.h>
#include <stdint.h>

struct err;

enum {
	TERMINAL_MSG_VERSION = 1,
	TERMINAL_KEY_SIZE = 25, /* Sec-WebSocket-Key */
	TERMINAL_PROTOCOL_SIZE = 257,
	TERMINAL_REQUEST_ID_SIZE = 129,
	TERMINAL_EARLY_MAX = 64 * 1024,
	TERMINAL_OFFER_MAX_AGE_MS = 10000 /* older ones are refused: their clients have had enough */
};

/* Plain data; strings NUL-terminated. The request has been judged: this is a handshake to be answered with 101. */
struct terminal_offer {
	uint32_t version;
	uint32_t slot; /* of the sandbox */
	int64_t sent_ms; /* boot clock */
	int64_t offset; /* with session: where its output goes on; -1: not said */
	char sandbox_id[SANDBOX_ID_SIZE];
	char sandbox_uid[ID_UUID_SIZE];
	char tenant[SANDBOX_TENANT_SIZE];
	char endpoint[SANDBOX_ENDPOINT_SIZE];
	char token[ID_TOKEN_SIZE];
	char session[ID_UUID_SIZE]; /* to attach to; "": a new one */
	char request_id[TERMINAL_REQUEST_ID_SIZE];
	char websocket_key[TERMINAL_KEY_SIZE];
	char protocol[TERMINAL_PROTOCOL_SIZE]; /* the subprotocol to answer; "": none */
	uint32_t early_len; /* at most TERMINAL_EARLY_MAX */
};

/* The master makes it: workers send on fds[0], gateways receive on fds[1]. Close-on-exec, non-blocking. */
int terminal_channel_open(int ret_fds[2], struct err *err) MUSTCHECK;
/* fd stays the caller's. ERR_BUSY when the channel is full. */
int terminal_offer_send(
	int channel, const struct terminal_offer *offer, const void *early, int fd, struct err *err) MUSTCHECK;
/* 1: *ret_offer with its bytes in early (TERMINAL_EARLY_MAX) and *ret_fd, the caller's; 0: nothing now; -1: broken. */
int terminal_offer_take(
	int channel, struct terminal_offer *ret_offer, void *early, int *ret_fd, struct err *err) MUSTCHECK;
/* Answers a handshake that cannot be served now with 503, as far as the socket takes it at once, and closes it. */
void terminal_refuse(int fd, const char *request_id, const char *detail);

#endif
