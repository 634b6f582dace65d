/*
 * kube_exchange.c - one transfer of libcurl: its settings, what it sends and takes, and what its end means.
 *
 * libcurl sends a request again by itself when a connection that it had kept turns out to be closed. It is not to know
 * better than we do what may be sent twice: for what goes out once, the body cannot be rewound, and what has no body
 * takes a connection that nobody used before.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_auth.h"
#include "kube/kube_wire.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include <event2/event.h>

enum { KEEPALIVE_IDLE_S = 15, KEEPALIVE_STEP_S = 5, ROOM_FIRST = 4096, RETRY_AFTER_MAX_S = 86400 };

static const char *const method_names[] = {
	[KUBE_GET] = "GET",
	[KUBE_POST] = "POST",
	[KUBE_PUT] = "PUT",
	[KUBE_PATCH] = "PATCH",
	[KUBE_DELETE] = "DELETE",
};

static bool
exchange_has_room(struct kube_exchange *exchange, size_t more)
{
	size_t max = exchange->wire->client->options.max_bytes;

	if (exchange->len + more > max) {
		exchange->too_large = true;
		return false;
	}
	if (exchange->len + more + 1 > exchange->room) {
		exchange->room = exchange->room != 0 ? exchange->room : ROOM_FIRST;
		while (exchange->room < exchange->len + more + 1)
			exchange->room *= 2;
		exchange->data = alloc_resize(exchange->data, exchange->room);
	}
	return true;
}

static bool
exchange_streams(const struct kube_exchange *exchange)
{
	long status = 0;

	kube_curl.easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	return exchange->send.stream && status == 200;
}

static void
exchange_heard(struct kube_exchange *exchange)
{
	struct timeval tv = clock_tv(exchange->send.silence_ms);

	if (exchange->send.silence_ms != 0)
		event_add(exchange->silence, &tv);
}

static size_t
exchange_take(char *data, size_t size, size_t count, void *arg)
{
	struct kube_exchange *exchange = arg;
	size_t len = size * count;

	if (!exchange_has_room(exchange, len))
		return CURL_WRITEFUNC_ERROR;
	memcpy(exchange->data + exchange->len, data, len);
	exchange->len += len;
	exchange->data[exchange->len] = '\0';
	exchange_heard(exchange);
	if (exchange_streams(exchange))
		kube_wire_ready(exchange);
	return len;
}

static size_t
exchange_give(char *buf, size_t size, size_t count, void *arg)
{
	struct kube_exchange *exchange = arg;
	size_t left = exchange->send.body_len - exchange->body_sent,
	       len = size * count < left ? size * count : left;

	if (len > 0)
		memcpy(buf, exchange->send.body + exchange->body_sent, len);
	exchange->body_sent += len;
	return len;
}

static int
exchange_rewind(void *arg, curl_off_t offset, int origin)
{
	struct kube_exchange *exchange = arg;

	if (origin != SEEK_SET || offset != 0 || (exchange->send.once && exchange->body_sent > 0))
		return CURL_SEEKFUNC_FAIL;
	exchange->body_sent = 0;
	return CURL_SEEKFUNC_OK;
}

/* What the peer's kernel does not acknowledge for that long is a connection that is half open. */
static int
exchange_on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	const struct kube_exchange *exchange = arg;
	unsigned timeout_ms = exchange->wire->client->options.attempt_ms;

	(void)purpose;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
	return CURL_SOCKOPT_OK;
}

static void
add_header(struct kube_exchange *exchange, const char *line)
{
	exchange->headers = must_alloc(kube_curl.slist_append(exchange->headers, line));
}

static void
set_headers(struct kube_exchange *exchange, const struct kube_identity *identity)
{
	AUTO_SECRET char *token = identity->token != NULL
		? alloc_format("Authorization: Bearer %s", identity->token)
		: NULL;
	const char *type = exchange->send.content_type;
	AUTO_FREE char *content_type = alloc_format("Content-Type: %s", type != NULL ? type : "application/json");

	add_header(exchange, "Accept: application/json");
	add_header(exchange, "User-Agent: orchard");
	/* No pause to hear whether the body is welcome. */
	add_header(exchange, "Expect:");
	if (exchange->send.body != NULL)
		add_header(exchange, content_type);
	if (token != NULL)
		add_header(exchange, token);
	kube_curl.easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, exchange->headers);
}

static void
set_blob(CURL *easy, CURLoption option, const struct kube_blob *from)
{
	struct curl_blob blob = { .data = from->data, .len = from->len, .flags = CURL_BLOB_COPY };

	if (from->data != NULL)
		kube_curl.easy_setopt(easy, option, &blob);
}

static void
set_tls(CURL *easy, const struct kube_config *config, const struct kube_identity *identity)
{
	kube_curl.easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	kube_curl.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, config->insecure ? 0L : 1L);
	kube_curl.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, config->insecure ? 0L : 2L);
	set_blob(easy, CURLOPT_CAINFO_BLOB, &config->ca);
	if (config->ca.data != NULL)
		kube_curl.easy_setopt(easy, CURLOPT_CAPATH, NULL);
	set_blob(easy, CURLOPT_SSLCERT_BLOB, identity->cert);
	set_blob(easy, CURLOPT_SSLKEY_BLOB, identity->key);
}

/*
 * libcurl takes the certificate's name from the URL. Where that is to be another, the URL has that one, and the
 * connection goes to where it should.
 */
static void
set_url(struct kube_exchange *exchange, const struct kube_config *config)
{
	AUTO_FREE char *url = NULL;
	AUTO_FREE char *via = NULL;
	AUTO_FREE char *host = NULL;
	const char *authority = strstr(config->server, "://") + 3;
	size_t scheme_len = (size_t)(authority - config->server), len = strcspn(authority, "/");
	const char *port = memrchr(authority, ':', len);

	if (config->tls_name == NULL || strncmp(config->server, "https", 5) != 0) {
		url = alloc_format("%s%s", config->server, exchange->send.path);
		kube_curl.easy_setopt(exchange->easy, CURLOPT_URL, url);
		return;
	}
	if (port != NULL && memchr(port, ']', (size_t)(authority + len - port)) != NULL)
		port = NULL;
	url = alloc_format("%.*s%s%s%s", (int)scheme_len, config->server, config->tls_name, authority + len,
		exchange->send.path);
	via = alloc_format("%s:443:%.*s%s", config->tls_name, (int)len, authority, port != NULL ? "" : ":443");
	host = alloc_format("Host: %.*s", (int)len, authority);
	add_header(exchange, host);
	exchange->connect_to = must_alloc(kube_curl.slist_append(NULL, via));
	kube_curl.easy_setopt(exchange->easy, CURLOPT_CONNECT_TO, exchange->connect_to);
	kube_curl.easy_setopt(exchange->easy, CURLOPT_URL, url);
}

static void
set_method(struct kube_exchange *exchange)
{
	const struct kube_send *send = &exchange->send;
	CURL *easy = exchange->easy;

	if (send->body != NULL) {
		kube_curl.easy_setopt(easy, CURLOPT_POST, 1L);
		kube_curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)send->body_len);
		kube_curl.easy_setopt(easy, CURLOPT_READFUNCTION, exchange_give);
		kube_curl.easy_setopt(easy, CURLOPT_READDATA, exchange);
		kube_curl.easy_setopt(easy, CURLOPT_SEEKFUNCTION, exchange_rewind);
		kube_curl.easy_setopt(easy, CURLOPT_SEEKDATA, exchange);
	} else if (send->once) {
		kube_curl.easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	}
	kube_curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method_names[send->method]);
}

static void
set_connection(struct kube_exchange *exchange)
{
	const struct kube_client *client = exchange->wire->client;
	CURL *easy = exchange->easy;

	kube_curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	kube_curl.easy_setopt(easy, CURLOPT_PROXY, client->config->proxy != NULL ? client->config->proxy : "");
	kube_curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/* Rather wait for TLS to say that a connection can be shared than make a hundred; without TLS nothing says so. */
	kube_curl.easy_setopt(easy, CURLOPT_PIPEWAIT, strncmp(client->config->server, "https", 5) == 0 ? 1L : 0L);
	kube_curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	kube_curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)client->options.connect_ms);
	kube_curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)exchange->send.timeout_ms);
	kube_curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	kube_curl.easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
	kube_curl.easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_STEP_S);
	kube_curl.easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, exchange_on_socket);
	kube_curl.easy_setopt(easy, CURLOPT_SOCKOPTDATA, exchange);
	kube_curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, exchange_take);
	kube_curl.easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	kube_curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->words);
	kube_curl.easy_setopt(easy, CURLOPT_PRIVATE, exchange);
}

static void
exchange_on_silence(evutil_socket_t fd, short what, void *arg)
{
	struct kube_exchange *exchange = arg;
	struct kube_client *client = exchange->wire->client;

	(void)fd;
	(void)what;
	if (exchange->ended)
		return;
	kube_client_enter(client);
	kube_curl.multi_remove_handle(exchange->wire->multi, exchange->easy);
	exchange->in_multi = false;
	exchange->ended = true;
	exchange->code = CURLE_OPERATION_TIMEDOUT;
	snprintf(exchange->words, sizeof exchange->words, "it said nothing for %u ms", exchange->send.silence_ms);
	kube_wire_ready(exchange);
	kube_wire_turn(exchange->wire);
	kube_client_leave(client);
}

struct kube_exchange *
kube_exchange_start(struct kube_wire *wire, const struct kube_send *send, const struct kube_identity *identity,
	const struct kube_exchange_ops *ops, void *arg, struct err *err)
{
	struct kube_exchange *exchange = alloc_zero(1, sizeof *exchange);
	CURLMcode code;

	*exchange = (struct kube_exchange){ .wire = wire, .send = *send, .ops = ops, .arg = arg };
	TAILQ_INSERT_TAIL(&wire->exchanges, exchange, entry);
	exchange->easy = must_alloc(kube_curl.easy_init());
	exchange->silence = must_alloc(event_new(wire->client->base, -1, 0, exchange_on_silence, exchange));
	set_connection(exchange);
	set_tls(exchange->easy, wire->client->config, identity);
	set_url(exchange, wire->client->config);
	set_headers(exchange, identity);
	set_method(exchange);
	code = kube_curl.multi_add_handle(wire->multi, exchange->easy);
	if (code != CURLM_OK) {
		kube_exchange_free(exchange);
		err_set(err, ERR_INTERNAL, "libcurl: %s", kube_curl.multi_strerror(code));
		return NULL;
	}
	exchange->in_multi = true;
	exchange_heard(exchange);
	return exchange;
}

void
kube_exchange_free(struct kube_exchange *exchange)
{
	struct kube_wire *wire = exchange->wire;

	if (exchange->in_multi)
		kube_curl.multi_remove_handle(wire->multi, exchange->easy);
	kube_curl.easy_cleanup(exchange->easy);
	for (struct curl_slist *line = exchange->headers; line != NULL; line = line->next)
		explicit_bzero(line->data, strlen(line->data));
	kube_curl.slist_free_all(exchange->headers);
	kube_curl.slist_free_all(exchange->connect_to);
	event_free(exchange->silence);
	if (exchange->is_ready)
		TAILQ_REMOVE(&wire->ready, exchange, ready_entry);
	TAILQ_REMOVE(&wire->exchanges, exchange, entry);
	free(exchange->data);
	free(exchange);
}

void
kube_exchange_cancel(struct kube_exchange *exchange)
{
	kube_exchange_free(exchange);
}

static bool
is_hopeless(const struct kube_exchange *exchange)
{
	switch (exchange->code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
		return true;
	default:
		return exchange->too_large;
	}
}

static void
exchange_end(struct kube_exchange *exchange, struct kube_end *end, struct err *err)
{
	const struct kube_client *client = exchange->wire->client;
	const char *words = exchange->words[0] != '\0' ? exchange->words : kube_curl.easy_strerror(exchange->code);
	curl_off_t after = 0;
	long status = 0, size = 0, version = 0;

	kube_curl.easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	kube_curl.easy_getinfo(exchange->easy, CURLINFO_REQUEST_SIZE, &size);
	kube_curl.easy_getinfo(exchange->easy, CURLINFO_RETRY_AFTER, &after);
	kube_curl.easy_getinfo(exchange->easy, CURLINFO_HTTP_VERSION, &version);
	if (after > RETRY_AFTER_MAX_S)
		after = RETRY_AFTER_MAX_S;
	*end = (struct kube_end){
		.status = (int)status,
		.text = exchange->data != NULL ? exchange->data : "",
		.len = exchange->len,
		.retry_after_ms = after > 0 ? (int64_t)after * 1000 : -1,
		.sent = size > 0 || exchange->body_sent > 0,
		.hopeless = is_hopeless(exchange),
		.http2 = version == CURL_HTTP_VERSION_2_0,
	};
	if (exchange->code == CURLE_OK)
		return;
	if (exchange->too_large)
		err_set(err, ERR_TOO_LARGE, "the API server's answer is larger than %zu bytes",
			client->options.max_bytes);
	else
		err_set(err, exchange->code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE,
			"the API server %s: %s", client->config->server, words);
	end->why = err;
}

static void
exchange_unready(struct kube_exchange *exchange)
{
	exchange->is_ready = false;
	TAILQ_REMOVE(&exchange->wire->ready, exchange, ready_entry);
}

void
kube_exchange_tell(struct kube_exchange *exchange)
{
	struct kube_end end;
	struct err err;

	if (exchange->len > 0 && exchange_streams(exchange)) {
		AUTO_FREE char *data = STEAL_PTR(exchange->data);
		size_t len = exchange->len;

		exchange->len = exchange->room = 0;
		if (!exchange->ended)
			exchange_unready(exchange);
		exchange->ops->input(exchange->arg, data, len);
		return;
	}
	exchange_unready(exchange);
	exchange_end(exchange, &end, &err);
	exchange->ops->ended(exchange->arg, &end);
	kube_exchange_free(exchange);
}
