/* link.c - libwebsockets as a client: its loop, one connection, one frame for each time it says "writable". */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/link.h"

#include "base/alloc.h"
#include "base/err.h"
#include "orchardctl/command.h"
#include "orchardctl/terminal/outbox.h"
#include "orchardctl/terminal/target.h"

#include <libwebsockets.h>
#include <stdio.h>
#include <string.h>

enum {
	READ_BYTES = 32 * 1024,
	MESSAGE_MAX = 4 * 1024 * 1024, /* of the server */
	DESCRIPTORS = 16,
	CONNECT_SECONDS = 15,
	PING_SECONDS = 15,
	SILENCE_SECONDS = 35, /* then nobody is there any more */
	CLOSE_SECONDS = 3
};

struct link {
	struct target target;
	struct lws_context *context;
	const struct link_events *events;
	void *arg;
	struct lws *wsi; /* NULL: no connection, and none coming */
	bool open, resting, shutting, told;
	struct outbox out;
	char *in; /* a message, as far as it has come */
	size_t in_len, in_size;
	int code; /* of the peer's close frame */
	char reason[128];
	lws_sorted_usec_list_t timer;
};

static void
link_end(struct link *link, int status, const char *reason)
{
	if (link->told)
		return;
	link->told = true;
	link->open = false;
	link->wsi = NULL;
	link->in_len = 0;
	outbox_clear(&link->out);
	link->events->on_closed(link->code, status, reason, link->arg);
}

static int
add_key(struct link *link, struct lws *wsi, unsigned char **p, unsigned char *end)
{
	const char *key = link->target.key;

	if (key == NULL)
		return 0;
	return lws_add_http_header_by_name(
		wsi, (const unsigned char *)"x-api-key:", (const unsigned char *)key, (int)strlen(key), p, end);
}

static int
take_piece(struct link *link, struct lws *wsi, const char *data, size_t len)
{
	if (link->in_len + len > MESSAGE_MAX) {
		lws_close_reason(wsi, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, NULL, 0);
		return -1;
	}
	if (link->in_len + len > link->in_size) {
		link->in_size = 2 * (link->in_len + len);
		link->in = alloc_resize(link->in, link->in_size);
	}
	memcpy(link->in + link->in_len, data, len);
	link->in_len += len;
	if (lws_remaining_packet_payload(wsi) > 0 || !lws_is_final_fragment(wsi))
		return 0;
	len = link->in_len;
	link->in_len = 0;
	link->events->on_text(link->in, len, link->arg);
	return 0;
}

static int
write_next(struct link *link, struct lws *wsi)
{
	size_t len;
	unsigned char *text = outbox_next(&link->out, &len);

	if (text != NULL) {
		int written = lws_write(wsi, text, len, LWS_WRITE_TEXT);

		outbox_drop(&link->out);
		if (written < (int)len)
			return -1;
		if (link->out.bytes > 0 || link->shutting)
			lws_callback_on_writable(wsi);
		return 0;
	}
	if (!link->shutting)
		return 0;
	lws_close_reason(wsi, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
	return -1;
}

static void
take_close(struct link *link, const unsigned char *in, size_t len)
{
	link->code = len >= 2 ? in[0] << 8 | in[1] : 1005;
	len = len >= 2 ? len - 2 : 0;
	snprintf(link->reason, sizeof link->reason, "%.*s", (int)len, (const char *)in + 2);
}

static int
link_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct link *link = lws_context_user(lws_get_context(wsi));

	(void)user;
	switch (reason) {
	case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
		return add_key(link, wsi, in, *(unsigned char **)in + len);
	case LWS_CALLBACK_CLIENT_ESTABLISHED:
		link->open = true;
		link->events->on_open(link->arg);
		return 0;
	case LWS_CALLBACK_CLIENT_RECEIVE:
		return take_piece(link, wsi, in, len);
	case LWS_CALLBACK_CLIENT_WRITEABLE:
		return write_next(link, wsi);
	case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
		take_close(link, in, len);
		return 0;
	case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
		link_end(link, (int)lws_http_client_http_response(wsi), in != NULL ? in : "no answer");
		return 0;
	case LWS_CALLBACK_CLIENT_CLOSED:
		link_end(link, 0, link->reason);
		return 0;
	default:
		return 0;
	}
}

static int
watch_callback(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len)
{
	struct link *link = lws_context_user(lws_get_context(wsi));

	(void)user;
	(void)in;
	(void)len;
	if (reason == LWS_CALLBACK_RAW_RX_FILE)
		link->events->on_watched(link->arg);
	return 0;
}

static const struct lws_protocols protocols[] = {
	{ "terminal", link_callback, 0, READ_BYTES, 0, NULL, 0 },
	{ "watch", watch_callback, 0, 0, 0, NULL, 0 },
	{ NULL, NULL, 0, 0, 0, NULL, 0 },
};

static struct lws_context *
open_context(struct link *link)
{
	struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN,
		.protocols = protocols,
		.gid = -1,
		.uid = -1,
		.user = link,
		.options = link->target.tls ? LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT : 0,
		.client_ssl_ca_filepath = link->target.ca_file,
		.fd_limit_per_thread = DESCRIPTORS,
		.pt_serv_buf_size = READ_BYTES,
		.timeout_secs = CONNECT_SECONDS,
	};

	lws_set_log_level(0, NULL);
	/* The library would take it for every host, also where no_proxy says otherwise. */
	unsetenv("http_proxy");
	return lws_create_context(&info);
}

struct link *
link_create(
	const struct server *server, int watched_fd, const struct link_events *events, void *arg, struct err *err)
{
	struct link *link = alloc_zero(1, sizeof *link);
	lws_sock_file_fd_type file = { .filefd = dup(watched_fd) };

	link->events = events;
	link->arg = arg;
	link->told = true;
	outbox_init(&link->out);
	if (target_init(&link->target, server, err) == 0) {
		link->context = open_context(link);
		if (link->context != NULL &&
			lws_adopt_descriptor_vhost(lws_get_vhost_by_name(link->context, "default"),
				LWS_ADOPT_RAW_FILE_DESC, file, "watch", NULL) != NULL)
			return link;
		err_set(err, ERR_INTERNAL, "libwebsockets does not start");
	}
	link_free(link);
	return NULL;
}

void
link_free(struct link *link)
{
	if (link == NULL)
		return;
	link->told = true;
	if (link->context != NULL)
		lws_context_destroy(link->context);
	target_fini(&link->target);
	outbox_clear(&link->out);
	free(link->in);
	free(link);
}

void
link_open(struct link *link, const char *path)
{
	static const lws_retry_bo_t liveness = { .secs_since_valid_ping = PING_SECONDS,
		.secs_since_valid_hangup = SILENCE_SECONDS };
	AUTO_FREE char *full = alloc_format("%s%s", link->target.prefix, path);
	struct lws_client_connect_info info = {
		.context = link->context,
		.address = link->target.address,
		.host = link->target.host,
		.port = link->target.port,
		.path = full,
		.ssl_connection = link->target.tls ? LCCSCF_USE_SSL : 0,
		.local_protocol_name = "terminal",
		.retry_and_idle_policy = &liveness,
		.pwsi = &link->wsi,
	};

	link->told = link->open = link->resting = link->shutting = false;
	link->code = LINK_BROKEN;
	link->reason[0] = '\0';
	if (lws_client_connect_via_info(&info) == NULL)
		link_end(link, 0, "can't connect");
}

bool
link_is_open(const struct link *link)
{
	return link->open;
}

void
link_send(struct link *link, char *text)
{
	if (link->open && !link->shutting) {
		outbox_push(&link->out, text);
		lws_callback_on_writable(link->wsi);
	}
	free(text);
}

size_t
link_pending(const struct link *link)
{
	return link->out.bytes;
}

void
link_rest(struct link *link, bool rest)
{
	if (!link->open || link->resting == rest)
		return;
	link->resting = rest;
	lws_rx_flow_control(link->wsi, !rest);
}

void
link_shut(struct link *link)
{
	if (link->wsi == NULL || link->shutting)
		return;
	link->shutting = true;
	link_rest(link, false);
	lws_set_timeout(link->wsi, PENDING_TIMEOUT_USER_OK, CLOSE_SECONDS);
	if (link->open)
		lws_callback_on_writable(link->wsi);
}

static void
on_timer(lws_sorted_usec_list_t *timer)
{
	(void)timer;
}

void
link_wait(struct link *link, int timeout_ms)
{
	if (timeout_ms >= 0)
		lws_sul_schedule(link->context, 0, &link->timer, on_timer, (lws_usec_t)timeout_ms * LWS_US_PER_MS);
	if (lws_service(link->context, 0) < 0)
		link_end(link, 0, "the connection's loop failed");
	lws_sul_cancel(&link->timer);
}
