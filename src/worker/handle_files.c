/* handle_files.c - the file routes whose parameters stand in the query: raw bytes, lists, looks, removal. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "conf/config.h"
#include "domain/file_call.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/file_target.h"
#include "worker/query.h"
#include "worker/relay.h"
#include "worker/request.h"

#include <stddef.h>
#include <string.h>

enum { LIST_LIMIT_MAX = 100000 };

static bool
add_flag(struct request *request, struct file_target *target, const char *name, bool fallback)
{
	bool value = fallback;

	if (!query_flag(request, name, &value))
		return false;
	file_target_flag(target, name, value);
	return true;
}

static bool
add_mode(struct request *request, struct file_target *target)
{
	AUTO_FREE char *text = NULL;

	if (!query_text(request, "mode", &text))
		return false;
	if (text != NULL && !file_mode_is_valid(text))
		return query_refuse(request, "mode", "value_error", "must be octal, 0 to 7777");
	file_target_add(target, "mode", text);
	return true;
}

static void
send(struct request *request, const char *method, const struct file_target *target)
{
	if (file_target_check(request, target))
		relay_start(request,
			&(struct relay_ask){
				.method = method,
				.target = target->text,
				.takes_body = strcmp(method, "PUT") == 0,
			});
}

void
handle_file_put(struct request *request)
{
	struct file_target target;

	file_target_init(&target, "/files");
	if (!file_target_whole(request) || !file_target_require(request, &target, "path") ||
		!add_mode(request, &target) || !file_target_take(request, &target, "user"))
		return;
	file_target_flag(&target, "fsync", request->api->config->file_fsync);
	send(request, "PUT", &target);
}

void
handle_file_get(struct request *request)
{
	static const char *const names[] = { "Range", "If-Range", "If-None-Match" };
	const struct http_head *head = http_exchange_head(request->exchange);
	const char *headers[2 * FILE_CALL_HEADERS + 1];
	struct file_target target;
	size_t count = 0;

	file_target_init(&target, "/files");
	if (!file_target_require(request, &target, "path") || !file_target_take(request, &target, "user") ||
		!file_target_check(request, &target))
		return;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		headers[count] = names[i];
		headers[count + 1] = http_head_header(head, names[i]);
		count += headers[count + 1] != NULL ? 2 : 0;
	}
	headers[count] = NULL;
	relay_start(request,
		&(struct relay_ask){
			.method = http_head_method(head) == HTTP_HEAD ? "HEAD" : "GET",
			.target = target.text,
			.headers = headers,
		});
}

void
handle_file_stat(struct request *request)
{
	struct file_target target;

	file_target_init(&target, "/files/stat");
	if (file_target_require(request, &target, "path") && add_flag(request, &target, "follow", true) &&
		file_target_take(request, &target, "user"))
		send(request, "GET", &target);
}

/* None: the sandbox's own. */
static bool
add_directory(struct request *request, struct file_target *target)
{
	AUTO_FREE char *path = NULL;

	if (!query_text(request, "path", &path))
		return false;
	if (path != NULL)
		return file_target_require(request, target, "path");
	file_target_add(target, "path", ".");
	return true;
}

void
handle_file_list(struct request *request)
{
	struct file_target target;
	uint32_t limit = 0;
	char text[16];

	file_target_init(&target, "/files/list");
	if (!add_directory(request, &target) || !query_limit(request, LIST_LIMIT_MAX, &limit) ||
		!file_target_take(request, &target, "after") || !file_target_take(request, &target, "user"))
		return;
	snprintf(text, sizeof text, "%u", limit);
	file_target_add(&target, "limit", limit > 0 ? text : NULL);
	send(request, "GET", &target);
}

void
handle_file_delete(struct request *request)
{
	struct file_target target;

	file_target_init(&target, "/files");
	if (file_target_require(request, &target, "path") && add_flag(request, &target, "recursive", false) &&
		file_target_take(request, &target, "user"))
		send(request, "DELETE", &target);
}
