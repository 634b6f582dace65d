/*
 * door.c - takes connections from the workers and has libwebsockets adopt them.
 *
 * libwebsockets reads the request again and may finish the handshake inside the call. So it gets one that is made up
 * of what matters, without what it cannot do: no extension (permessage-deflate ends the process in the version of
 * Debian 12), no subprotocol (it knows only names of its own), and with the terminal's number.
 */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "ipc/shm.h"
#include "master/role.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TAKE_AT_ONCE = 32, HEAD_ROOM = 512 };

static void
refuse(struct gateway *gateway, const struct terminal_offer *offer, int fd, const char *why)
{
	struct log_ctx ctx = { .request_id = offer->request_id, .sandbox_id = offer->sandbox_id };

	scoreboard_add(shm_scoreboard(gateway->env->shm), gateway->env->self, METRIC_TERMINALS_REFUSED, 1);
	log_write(LOG_LEVEL_WARN, &ctx, "terminal refused: %s", why);
	terminal_refuse(fd, offer->request_id, why);
}

static void
adopt(struct gateway *gateway, const struct terminal_offer *offer, const void *early, int fd)
{
	struct terminal *terminal = terminal_create(gateway, offer);
	uint64_t number = terminal->number;
	char *head = alloc_bytes(HEAD_ROOM + offer->early_len);
	size_t len = (size_t)snprintf(head, HEAD_ROOM,
		"GET /terminal HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\nx-orchard-terminal: %" PRIu64 "\r\n\r\n",
		offer->websocket_key, number);

	memcpy(head + len, early, offer->early_len);
	/* It may be over when this returns: look for it again. */
	if (lws_adopt_socket_vhost_readbuf(gateway->vhost, fd, head, len + offer->early_len) == NULL) {
		terminal = terminal_find(gateway, number);
		if (terminal != NULL && terminal->client.wsi == NULL && terminal->agent.wsi == NULL)
			terminal_free(terminal);
	}
	free(head);
}

static void
receive(struct gateway *gateway, const struct terminal_offer *offer, const void *early, int fd)
{
	if (gateway->refusing)
		refuse(gateway, offer, fd, "the server is stopping; try again");
	else if (clock_boot_ms() - offer->sent_ms > TERMINAL_OFFER_MAX_AGE_MS)
		refuse(gateway, offer, fd, "terminals were not served for a while; try again");
	else if (gateway->count >= gateway->most)
		refuse(gateway, offer, fd, "too many terminals are open; close some, or raise max_terminals");
	else
		adopt(gateway, offer, early, fd);
}

static void
take(struct gateway *gateway, int most)
{
	AUTO_FREE void *early = alloc_bytes(TERMINAL_EARLY_MAX);
	struct terminal_offer offer;
	struct err err;
	int fd, rc;

	while (most-- > 0) {
		rc = terminal_offer_take(gateway->env->terminal_fd, &offer, early, &fd, &err);
		if (rc == 0)
			break;
		if (rc > 0)
			receive(gateway, &offer, early, fd);
		else
			log_error("%s", err.msg);
		if (rc < 0 && err.code != ERR_INVALID)
			break;
	}
	explicit_bzero(&offer, sizeof offer);
}

void
door_take(struct gateway *gateway)
{
	take(gateway, TAKE_AT_ONCE);
}

void
door_refuse(struct gateway *gateway)
{
	gateway->refusing = true;
	take(gateway, INT32_MAX);
}
