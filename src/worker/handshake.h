/* handshake.h - the request that opens a WebSocket (RFC 6455, 4.2.1), judged before anything of it is answered. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_HANDSHAKE_H
#define ORCHARD_WORKER_HANDSHAKE_H

#include "base/cleanup.h"
#include "ipc/terminal_msg.h"

#include <stdbool.h>

struct http_head;
struct request;

struct handshake {
	char key[TERMINAL_KEY_SIZE]; /* Sec-WebSocket-Key */
	char protocol[TERMINAL_PROTOCOL_SIZE]; /* the subprotocol to answer; "": none was offered */
};

/*
 * False: it has been answered, 426 when it asks for no WebSocket of version 13, 400 when it is malformed. The subprotocol
 * is the first offered one that is no key, else the first: clients drop a handshake that leaves their offer unanswered.
 */
bool handshake_read(struct request *request, struct handshake *ret_handshake) MUSTCHECK;
/*
 * The API key that a browser, which cannot set headers here, put into the query (api_key=) or offered as the subprotocol
 * api_key.KEY; malloc'ed, or NULL.
 */
char *handshake_key(const struct http_head *head);

#endif
