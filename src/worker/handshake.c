/* handshake.c - the headers of a WebSocket handshake. */
/* SPDX-License-Identifier: MIT */
#include "worker/handshake.h"

#include "base/alloc.h"
#include "base/text.h"
#include "http/http_server.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <string.h>
#include <strings.h>

static const char protocol_header[] = "Sec-WebSocket-Protocol", key_prefix[] = "api_key.";

struct offers {
	const struct http_head *head;
	uint32_t line;
	const char *at; /* in that line; NULL: before it */
};

/* The next offered name, not NUL-terminated; 0: there is no more. */
static size_t
offers_next(struct offers *offers, const char **ret_name)
{
	for (;;) {
		size_t len;

		if (offers->at == NULL)
			offers->at = http_head_header_at(offers->head, protocol_header, offers->line++);
		if (offers->at == NULL)
			return 0;
		*ret_name = offers->at + strspn(offers->at, " \t,");
		len = strcspn(*ret_name, ",");
		offers->at = *ret_name + len;
		while (len > 0 && ((*ret_name)[len - 1] == ' ' || (*ret_name)[len - 1] == '\t'))
			len--;
		if (len > 0)
			return len;
		offers->at = NULL;
	}
}

static bool
offer_is_key(const char *name, size_t len)
{
	return len > sizeof key_prefix - 1 && strncmp(name, key_prefix, sizeof key_prefix - 1) == 0;
}

char *
handshake_key(const struct http_head *head)
{
	struct offers offers = { .head = head };
	AUTO_SECRET char *key = NULL;
	const char *name;
	size_t len;

	if (http_query_get(http_head_query(head), "api_key", &key) > 0 && *key != '\0')
		return STEAL_PTR(key);
	while ((len = offers_next(&offers, &name)) > 0)
		if (offer_is_key(name, len))
			return alloc_format(
				"%.*s", (int)(len - sizeof key_prefix + 1), name + sizeof key_prefix - 1);
	return NULL;
}

/* Printable, and no longer than what can be answered. */
static bool
choose_protocol(const struct http_head *head, char ret_protocol[TERMINAL_PROTOCOL_SIZE])
{
	struct offers offers = { .head = head };
	const char *name, *chosen = NULL;
	size_t len, chosen_len = 0;

	while ((len = offers_next(&offers, &name)) > 0) {
		bool better = chosen == NULL || (offer_is_key(chosen, chosen_len) && !offer_is_key(name, len));

		if (!better)
			continue;
		chosen = name;
		chosen_len = len;
	}
	if (chosen_len >= TERMINAL_PROTOCOL_SIZE)
		return false;
	for (size_t i = 0; i < chosen_len; i++)
		if (chosen[i] <= ' ' || chosen[i] > '~')
			return false;
	if (chosen != NULL)
		memcpy(ret_protocol, chosen, chosen_len);
	ret_protocol[chosen_len] = '\0';
	return true;
}

static const char *
header_once(const struct http_head *head, const char *name)
{
	return http_head_header_count(head, name) == 1 ? http_head_header(head, name) : NULL;
}

static bool
key_is_valid(const char *key)
{
	AUTO_FREE uint8_t *bytes = NULL;
	size_t len;

	return key != NULL && strlen(key) == TERMINAL_KEY_SIZE - 1 &&
		text_base64_decode(key, TERMINAL_KEY_SIZE - 1, &bytes, &len) == 0 && len == 16;
}

static void
refuse_upgrade(struct request *request, const char *words)
{
	http_exchange_add_header(request->exchange, "Upgrade", "websocket");
	http_exchange_add_header(request->exchange, "Sec-WebSocket-Version", "13");
	respond_problem(request, PROBLEM_UPGRADE_REQUIRED, "%s", words);
}

bool
handshake_read(struct request *request, struct handshake *ret_handshake)
{
	const struct http_head *head = http_exchange_head(request->exchange);
	const char *upgrade = http_head_upgrade(head), *version = header_once(head, "Sec-WebSocket-Version");
	const char *key = header_once(head, "Sec-WebSocket-Key");

	if (upgrade == NULL || strcasecmp(upgrade, "websocket") != 0) {
		refuse_upgrade(request, "a terminal is a WebSocket: ask for it with Connection: Upgrade");
		return false;
	}
	if (version == NULL || strcmp(version, "13") != 0) {
		refuse_upgrade(request, "only version 13 of the WebSocket protocol is spoken here");
		return false;
	}
	if (!key_is_valid(key)) {
		respond_problem(request, PROBLEM_BAD_REQUEST, "Sec-WebSocket-Key must be 16 bytes in base64, once");
		return false;
	}
	if (!choose_protocol(head, ret_handshake->protocol)) {
		respond_problem(request, PROBLEM_BAD_REQUEST,
			"a name in Sec-WebSocket-Protocol must be printable and shorter than %d bytes",
			TERMINAL_PROTOCOL_SIZE);
		return false;
	}
	strcpy(ret_handshake->key, key);
	return true;
}
