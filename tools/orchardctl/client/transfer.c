/* transfer.c - one request as libcurl sends it. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/alloc.h"
#include "base/json.h"
#include "orchardctl/client/client_impl.h"
#include "orchardctl/client/here.h"
#include "orchardctl/client/problem.h"

#include <json-c/json_object.h>
#include <stdio.h>
#include <strings.h>

enum { ANSWER_MAX = 256 << 20, HEAD_MAX = 256 << 10, CONNECT_SECONDS = 10, SILENCE_SECONDS = 90 };

#define SET(transfer, option, value)                                                                               \
	do {                                                                                                       \
		if (curl_easy_setopt((transfer)->easy, option, value) != CURLE_OK)                                 \
			abort();                                                                                   \
	} while (0)

/* A piece more at the end of *text, which stays a string. */
static bool
grow(char **text, size_t *len, const char *piece, size_t piece_len, size_t max)
{
	if (piece_len > max - *len)
		return false;
	*text = alloc_resize(*text, *len + piece_len + 1);
	memcpy(*text + *len, piece, piece_len);
	*len += piece_len;
	(*text)[*len] = '\0';
	return true;
}

static size_t
on_header(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	struct answer *answer = transfer->answer;

	/* The head of a "100 Continue" is not the answer's. */
	if (size * count > 5 && strncmp(data, "HTTP/", 5) == 0)
		transfer->head_len = 0;
	return grow(&answer->head, &transfer->head_len, data, size * count, HEAD_MAX) ? size * count : 0;
}

static size_t
on_data(char *data, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	struct answer *answer = transfer->answer;
	size_t len = size * count;

	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	if (transfer->request->on_body != NULL && answer->status >= 200 && answer->status < 300) {
		transfer->stopped = transfer->request->on_body(data, len, transfer->request->arg) != 0;
		return transfer->stopped ? CURL_WRITEFUNC_ERROR : len;
	}
	transfer->too_large = !grow(&answer->body, &answer->len, data, len, ANSWER_MAX);
	return transfer->too_large ? CURL_WRITEFUNC_ERROR : len;
}

static size_t
on_read(char *buf, size_t size, size_t count, void *arg)
{
	struct transfer *transfer = arg;
	size_t len = transfer->request->read(buf, size * count, transfer->request->arg);

	transfer->stopped = len == CLIENT_READ_FAILED;
	return transfer->stopped ? CURL_READFUNC_ABORT : len;
}

static void
add_header(struct transfer *transfer, const char *line)
{
	transfer->headers = must_alloc(curl_slist_append(transfer->headers, line));
}

static void
set_body(struct transfer *transfer)
{
	const struct request *request = transfer->request;
	const void *data = request->data;
	size_t len = request->data_len;

	if (request->read != NULL) {
		SET(transfer, CURLOPT_UPLOAD, 1L);
		SET(transfer, CURLOPT_READFUNCTION, on_read);
		SET(transfer, CURLOPT_READDATA, transfer);
		SET(transfer, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->read_len);
		return;
	}
	if (request->body != NULL) {
		const char *text = json_text(request->body, &len);

		data = transfer->body_text = alloc_bytes(len + 1);
		memcpy(transfer->body_text, text, len + 1);
		add_header(transfer, "Content-Type: application/json");
	} else if (data == NULL && strcmp(request->method, "POST") != 0) {
		return;
	}
	SET(transfer, CURLOPT_POST, 1L);
	SET(transfer, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
	SET(transfer, CURLOPT_POSTFIELDS, data != NULL ? data : "");
}

static void
set_headers(struct transfer *transfer, const char *key)
{
	if (transfer->client->key_header != NULL)
		add_header(transfer, transfer->client->key_header);
	if (key != NULL) {
		AUTO_FREE char *line = alloc_format("Idempotency-Key: %s", key);

		add_header(transfer, line);
	}
	for (const char *const *line = transfer->request->headers; line != NULL && *line != NULL; line++)
		add_header(transfer, *line);
	SET(transfer, CURLOPT_HTTPHEADER, transfer->headers);
}

static void
set_limits(struct transfer *transfer)
{
	double silence = transfer->request->silence_s;

	SET(transfer, CURLOPT_NOSIGNAL, 1L);
	SET(transfer, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
	SET(transfer, CURLOPT_LOW_SPEED_LIMIT, 1L);
	SET(transfer, CURLOPT_LOW_SPEED_TIME, silence > 0 ? (long)silence + 1 : (long)SILENCE_SECONDS);
	SET(transfer, CURLOPT_TCP_KEEPALIVE, 1L);
	SET(transfer, CURLOPT_PROTOCOLS_STR, "http,https");
	SET(transfer, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
}

struct transfer *
client_start(struct client *client, const struct request *request, const char *key, struct answer *answer)
{
	struct transfer *transfer = alloc_zero(1, sizeof *transfer);
	AUTO_FREE char *url = alloc_format("%s%s", client->url, request->path);
	const char *method = request->method != NULL ? request->method : "GET";

	*answer = (struct answer){ 0 };
	transfer->client = client;
	transfer->request = request;
	transfer->answer = answer;
	transfer->easy = must_alloc(curl_easy_init());
	SET(transfer, CURLOPT_ERRORBUFFER, transfer->words);
	SET(transfer, CURLOPT_URL, url);
	/* A sandbox called ".." is none, and not the server. */
	SET(transfer, CURLOPT_PATH_AS_IS, 1L);
	SET(transfer, CURLOPT_PRIVATE, transfer);
	SET(transfer, CURLOPT_USERAGENT, "orchardctl/" PACKAGE_VERSION);
	SET(transfer, CURLOPT_HEADERFUNCTION, on_header);
	SET(transfer, CURLOPT_HEADERDATA, transfer);
	SET(transfer, CURLOPT_WRITEFUNCTION, on_data);
	SET(transfer, CURLOPT_WRITEDATA, transfer);
	/* A proxy of the environment does not reach this host, and has no business with its key. */
	if (url_is_here(client->url))
		SET(transfer, CURLOPT_PROXY, "");
	if (client->ca_file != NULL)
		SET(transfer, CURLOPT_CAINFO, client->ca_file);
	set_limits(transfer);
	/* On a connection that was used before, libcurl sends a request again by itself when that one turns out dead. */
	if (request->no_retry || request->read != NULL)
		SET(transfer, CURLOPT_FRESH_CONNECT, 1L);
	if (strcmp(method, "HEAD") == 0)
		SET(transfer, CURLOPT_NOBODY, 1L);
	if (strcmp(method, "GET") != 0)
		set_body(transfer);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		SET(transfer, CURLOPT_CUSTOMREQUEST, method);
	set_headers(transfer, key);
	if (curl_multi_add_handle(client->multi, transfer->easy) != CURLM_OK)
		abort();
	return transfer;
}

bool
transfer_is_done(const struct transfer *transfer)
{
	return transfer->done;
}

/* What never works, however often it is tried. */
static bool
is_hopeless(CURLcode code)
{
	static const CURLcode hopeless[] = { CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_OUT_OF_MEMORY,
		CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
		CURLE_WRITE_ERROR, CURLE_ABORTED_BY_CALLBACK };

	for (size_t i = 0; i < sizeof hopeless / sizeof *hopeless; i++)
		if (hopeless[i] == code)
			return true;
	return false;
}

static int
fail_broken(const struct transfer *transfer, bool *ret_again, struct err *err)
{
	const char *words = transfer->words[0] != '\0' ? transfer->words : curl_easy_strerror(transfer->code);

	*ret_again = !is_hopeless(transfer->code);
	if (!transfer->done)
		return err_set(err, ERR_STALE, "interrupted");
	if (transfer->stopped)
		return err_set(err, ERR_CLOSED, "given up");
	if (transfer->too_large)
		return err_set(err, ERR_TOO_LARGE, "the answer has more than %d MiB", ANSWER_MAX >> 20);
	return err_set(err, ERR_UNAVAILABLE, "no answer from %s: %s", transfer->client->url, words);
}

static void
read_answer(struct answer *answer)
{
	AUTO_FREE char *pause = answer_header(answer, "Retry-After");
	struct err err;

	if (pause != NULL)
		answer->retry_after = strtod(pause, NULL);
	if (answer->len > 0 && (answer->body[0] == '{' || answer->body[0] == '['))
		answer->json = json_parse_names(answer->body, answer->len, &err);
}

int
client_end(struct transfer *transfer, bool *ret_again, struct err *err)
{
	struct answer *answer = transfer->answer;
	bool again = false;
	int rc = 0;

	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	if (!transfer->done || transfer->code != CURLE_OK) {
		rc = fail_broken(transfer, &again, err);
	} else {
		read_answer(answer);
		if (answer->status < 200 || answer->status > 299)
			rc = problem_of_answer(answer, transfer->client->url, err);
		/* A conflict that passes, such as a name whose sandbox is still being removed, says so by Retry-After. */
		again = answer->status == 429 || (answer->status >= 502 && answer->status <= 504) ||
			(answer->status == 409 && answer->retry_after > 0);
	}
	if (ret_again != NULL)
		*ret_again = again;
	curl_multi_remove_handle(transfer->client->multi, transfer->easy);
	curl_easy_cleanup(transfer->easy);
	curl_slist_free_all(transfer->headers);
	free(transfer->body_text);
	free(transfer);
	return rc;
}

char *
answer_header(const struct answer *answer, const char *name)
{
	size_t name_len = strlen(name);

	for (const char *line = answer->head; line != NULL && *line != '\0';) {
		size_t len = strcspn(line, "\r\n");

		if (len > name_len && line[name_len] == ':' && strncasecmp(line, name, name_len) == 0) {
			const char *value = line + name_len + 1;

			value += strspn(value, " \t");
			return alloc_format("%.*s", (int)(line + len - value), value);
		}
		line += len + strspn(line + len, "\r\n");
	}
	return NULL;
}

void
answer_fini(struct answer *answer)
{
	json_object_put(answer->json);
	free(answer->body);
	free(answer->head);
	*answer = (struct answer){ 0 };
}
