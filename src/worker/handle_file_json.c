/*
 * handle_file_json.c - the file routes that speak JSON: a file in base64, up and down; making and moving.
 *
 * A download is encoded as it comes. An upload is held whole, as any body of JSON is: its members may come in any
 * order, so it is not known where it goes before all of it is there.
 */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/config.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/file_target.h"
#include "worker/piece.h"
#include "worker/query.h"
#include "worker/relay.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <event2/buffer.h>
#include <json-c/json.h>
#include <string.h>

enum { PATH_SIZE_MAX = 4095, USER_SIZE_MAX = 255 };

/* --- a file as JSON, to the client --- */

struct download {
	char *path; /* as JSON */
	uint8_t rest[3]; /* bytes that make no whole group yet */
	size_t rest_len;
	int64_t size;
};

static void
download_free(void *arg)
{
	struct download *download = arg;

	free(download->path);
	free(download);
}

static void
download_begin(struct evbuffer *out, void *arg)
{
	const struct download *download = arg;

	evbuffer_add_printf(out, "{\"path\":%s,\"content\":\"", download->path);
}

static void
download_encode(struct evbuffer *out, const void *data, size_t len)
{
	size_t size = text_base64_size(len);
	char *text = alloc_bytes(size + 1);

	text_base64_encode(data, len, text);
	piece_add(out, text, size);
}

/* Groups of three bytes only, so that what is joined is one text. */
static void
download_piece(struct evbuffer *in, struct evbuffer *out, void *arg)
{
	struct download *download = arg;
	size_t len = evbuffer_get_length(in), whole;
	uint8_t *data;

	download->size += (int64_t)len;
	evbuffer_prepend(in, download->rest, download->rest_len);
	len += download->rest_len;
	whole = len - len % 3;
	data = evbuffer_pullup(in, -1);
	if (whole > 0)
		download_encode(out, data, whole);
	download->rest_len = len - whole;
	memcpy(download->rest, data + whole, download->rest_len);
	evbuffer_drain(in, len);
}

static void
download_end(struct evbuffer *out, void *arg)
{
	struct download *download = arg;

	if (download->rest_len > 0)
		download_encode(out, download->rest, download->rest_len);
	evbuffer_add_printf(out, "\",\"size\":%lld}", (long long)download->size);
}

static const struct relay_shape download_shape = {
	.content_type = "application/json",
	.begin = download_begin,
	.piece = download_piece,
	.end = download_end,
	.free = download_free,
};

static struct download *
download_create(const char *path)
{
	struct download *download = alloc_zero(1, sizeof *download);
	AUTO_JSON struct json_object *text = json_object_new_string(path);
	size_t len;

	download->path = json_text_names(text, &len);
	return download;
}

void
handle_file_download(struct request *request)
{
	static const struct respond_fault missing = { PROBLEM_INVALID_REQUEST, "query", "path", "missing" };
	bool head = http_head_method(http_exchange_head(request->exchange)) == HTTP_HEAD;
	AUTO_FREE char *path = NULL;
	AUTO_FREE char *user = NULL;
	struct file_target target;

	if (!query_text(request, "path", &path) || !query_text(request, "user", &user))
		return;
	if (path == NULL || *path == '\0') {
		respond_fault(request, &missing, "is needed, and not empty");
		return;
	}
	file_target_init(&target, "/files");
	file_target_add(&target, "path", path);
	file_target_add(&target, "user", user);
	if (file_target_check(request, &target))
		relay_start(request,
			&(struct relay_ask){
				.method = head ? "HEAD" : "GET",
				.target = target.text,
				.shape = &download_shape,
				.shape_arg = download_create(path),
			});
}

/* --- bodies --- */

static const char *
read_path(struct json_reader *reader, const char *name)
{
	const char *path = NULL;

	if (!json_reader_require(reader, name) || !json_reader_string(reader, name, PATH_SIZE_MAX, &path))
		return NULL;
	if (*path == '\0')
		json_reader_fault(reader, name, "value_error", "must not be empty");
	return path;
}

static const char *
read_mode(struct json_reader *reader)
{
	const char *mode = NULL;

	if (json_reader_string(reader, "mode", SIZE_MAX, &mode) && !file_mode_is_valid(mode))
		json_reader_fault(reader, "mode", "value_error", "must be octal in a string, \"0\" to \"7777\"");
	return mode;
}

static const char *
read_user(struct json_reader *reader)
{
	const char *user = NULL;

	json_reader_string(reader, "user", USER_SIZE_MAX, &user);
	return user;
}

/* NULL: a fault. */
static struct evbuffer *
read_content(struct json_reader *reader)
{
	const char *text = NULL;
	struct evbuffer *body;
	uint8_t *data;
	size_t len;

	if (!json_reader_require(reader, "content") || !json_reader_bytes(reader, "content", SIZE_MAX, &text, &len))
		return NULL;
	if (text_base64_decode(text, len, &data, &len) != 0) {
		json_reader_fault(reader, "content", "value_error",
			"must be base64 (RFC 4648) with its padding, without line breaks");
		return NULL;
	}
	body = evbuffer_new();
	if (body == NULL)
		abort();
	piece_add(body, data, len);
	return body;
}

void
handle_file_upload(struct request *request)
{
	struct json_reader reader;
	struct file_target target;
	struct evbuffer *body;

	json_reader_init(&reader, request->body);
	file_target_init(&target, "/files");
	file_target_add(&target, "path", read_path(&reader, "path"));
	file_target_add(&target, "mode", read_mode(&reader));
	file_target_add(&target, "user", read_user(&reader));
	file_target_flag(&target, "fsync", request->api->config->file_fsync);
	body = read_content(&reader);
	if (reader.faults != NULL) {
		if (body != NULL)
			evbuffer_free(body);
		respond_faults(request, &reader);
		return;
	}
	json_reader_fini(&reader);
	json_object_put(request->body);
	request->body = NULL;
	if (file_target_check(request, &target))
		relay_start(request, &(struct relay_ask){ .method = "PUT", .target = target.text, .body = body });
	else
		evbuffer_free(body);
}

static void
post(struct request *request, struct json_reader *reader, const struct file_target *target)
{
	if (reader->faults != NULL) {
		respond_faults(request, reader);
		return;
	}
	json_reader_fini(reader);
	if (file_target_check(request, target))
		relay_start(request, &(struct relay_ask){ .method = "POST", .target = target->text });
}

static void
add_flag(struct json_reader *reader, struct file_target *target, const char *name)
{
	bool value = false;

	if (json_reader_bool(reader, name, &value))
		file_target_flag(target, name, value);
}

void
handle_file_mkdir(struct request *request)
{
	struct json_reader reader;
	struct file_target target;

	json_reader_init(&reader, request->body);
	file_target_init(&target, "/files/mkdir");
	file_target_add(&target, "path", read_path(&reader, "path"));
	file_target_add(&target, "mode", read_mode(&reader));
	file_target_add(&target, "user", read_user(&reader));
	add_flag(&reader, &target, "parents");
	post(request, &reader, &target);
}

void
handle_file_move(struct request *request)
{
	struct json_reader reader;
	struct file_target target;

	json_reader_init(&reader, request->body);
	file_target_init(&target, "/files/move");
	file_target_add(&target, "from", read_path(&reader, "from"));
	file_target_add(&target, "to", read_path(&reader, "to"));
	file_target_add(&target, "user", read_user(&reader));
	add_flag(&reader, &target, "overwrite");
	add_flag(&reader, &target, "parents");
	post(request, &reader, &target);
}
