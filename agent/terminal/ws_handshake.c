/* ws_handshake.c - the key shows that both sides mean the same protocol; it protects nothing. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/ws_handshake.h"

#include "base/text.h"
#include "http/http_parser.h"

#include <event2/buffer.h>
#include <sha1.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { WS_KEY_SIZE = 16, WS_ACCEPT_SIZE = 29 };

static bool
handshake_key_is_right(const struct http_head *head)
{
	const char *key = http_head_header(head, "Sec-WebSocket-Key");
	AUTO_FREE uint8_t *bytes = NULL;
	size_t len;

	return key != NULL && http_head_header_count(head, "Sec-WebSocket-Key") == 1 &&
		text_base64_decode(key, strlen(key), &bytes, &len) == 0 && len == WS_KEY_SIZE;
}

int
ws_handshake_check(const struct http_head *head, const char **ret_detail)
{
	const char *upgrade = http_head_upgrade(head);
	const char *version = http_head_header(head, "Sec-WebSocket-Version");

	if (upgrade == NULL || strcasecmp(upgrade, "websocket") != 0) {
		*ret_detail = "this route takes WebSocket requests";
		return 426;
	}
	if (version == NULL || strcmp(version, "13") != 0 ||
		http_head_header_count(head, "Sec-WebSocket-Version") != 1) {
		*ret_detail = "only version 13 of WebSocket is spoken here";
		return 426;
	}
	if (!handshake_key_is_right(head)) {
		*ret_detail = "Sec-WebSocket-Key must be 16 bytes in base64, once";
		return 400;
	}
	return 0;
}

void
ws_handshake_answer(const struct http_head *head, struct evbuffer *out)
{
	static const char suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	const char *key = http_head_header(head, "Sec-WebSocket-Key");
	uint8_t digest[SHA1_DIGEST_LENGTH];
	char accept[WS_ACCEPT_SIZE];
	SHA1_CTX sha;

	SHA1Init(&sha);
	SHA1Update(&sha, (const uint8_t *)key, strlen(key));
	SHA1Update(&sha, (const uint8_t *)suffix, sizeof suffix - 1);
	SHA1Final(digest, &sha);
	text_base64_encode(digest, sizeof digest, accept);
	if (evbuffer_add_printf(out,
		    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		    "Sec-WebSocket-Accept: %s\r\n\r\n",
		    accept) < 0)
		abort();
}
