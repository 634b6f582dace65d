/* ws_handshake.h - RFC 6455, section 4.2: may this request become a WebSocket, and the answer. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_WS_HANDSHAKE_H
#define ORCHARD_AGENT_WS_HANDSHAKE_H

#include "base/cleanup.h"

struct evbuffer;
struct http_head;

/* 0, or the status to refuse with (400, 426) and *ret_detail, a literal. */
int ws_handshake_check(const struct http_head *head, const char **ret_detail) MUSTCHECK;
/* The answer to a head that passed the check: no extension, no subprotocol. */
void ws_handshake_answer(const struct http_head *head, struct evbuffer *out);

#endif
