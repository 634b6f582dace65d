/* handle_archive.c - PUT and GET /sandboxes/{id}/archive: a directory as tar, handed on piece by piece. */
/* SPDX-License-Identifier: MIT */
#include "worker/routes.h"

#include "http/http_server.h"
#include "worker/file_target.h"
#include "worker/relay.h"
#include "worker/request.h"

void
handle_archive_put(struct request *request)
{
	static const char *const owners[3] = { "user", "keep", "must be user or keep" };
	static const char *const links[3] = { "inside", "any", "must be inside or any" };
	struct file_target target;

	file_target_init(&target, "/archive");
	if (file_target_whole(request) && file_target_require(request, &target, "path") &&
		file_target_choose(request, &target, "owners", owners) &&
		file_target_choose(request, &target, "links", links) &&
		file_target_take(request, &target, "user") && file_target_check(request, &target))
		relay_start(
			request, &(struct relay_ask){ .method = "PUT", .target = target.text, .takes_body = true });
}

void
handle_archive_get(struct request *request)
{
	static const char *const unreadable[3] = { "refuse", "skip", "must be refuse or skip" };
	enum http_method method = http_head_method(http_exchange_head(request->exchange));
	struct file_target target;

	file_target_init(&target, "/archive");
	if (file_target_require(request, &target, "path") &&
		file_target_choose(request, &target, "unreadable", unreadable) &&
		file_target_take(request, &target, "user") && file_target_check(request, &target))
		relay_start(request,
			&(struct relay_ask){
				.method = method == HTTP_HEAD ? "HEAD" : "GET",
				.target = target.text,
			});
}
