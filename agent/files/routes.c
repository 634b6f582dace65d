/* routes.c - one line per route; its parameters are read in the agent, all else is done by a helper. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/routes.h"
#include "agent/files/file_call.h"
#include "agent/files/helper.h"

#include "agent/answer.h"
#include "agent/query.h"
#include "base/alloc.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <stddef.h>
#include <string.h>

struct files_route {
	enum http_method method;
	const char *rest;
	const char *from; /* the parameter that names what it is about */
	bool takes_to;
	void (*run)(struct helper_side *side, const void *arg);
};

static const struct files_route files_routes[] = {
	{ HTTP_PUT, "", "path", false, file_put_run },
	{ HTTP_GET, "", "path", false, file_get_run },
	{ HTTP_HEAD, "", "path", false, file_get_run },
	{ HTTP_DELETE, "", "path", false, file_delete_run },
	{ HTTP_GET, "/stat", "path", false, file_stat_run },
	{ HTTP_GET, "/list", "path", false, file_list_run },
	{ HTTP_POST, "/mkdir", "path", false, file_mkdir_run },
	{ HTTP_POST, "/move", "from", true, file_move_run },
};

/* NULL: answered with 404 or 405. */
static const struct files_route *
files_find(struct http_exchange *exchange, const char *rest)
{
	enum http_method method = http_head_method(http_exchange_head(exchange));
	bool known = false;

	for (size_t i = 0; i < sizeof files_routes / sizeof files_routes[0]; i++) {
		bool here = strcmp(files_routes[i].rest, rest) == 0;

		known = known || here;
		if (here && files_routes[i].method == method)
			return &files_routes[i];
	}
	if (known)
		answer_error(exchange, 405, "method_not_allowed", "this route takes another method");
	else
		answer_error(exchange, 404, "not_found", "no such route");
	return NULL;
}

/* At most 07777, in octal; false: answered. */
static bool
files_mode(struct http_exchange *exchange, int *ret_mode)
{
	AUTO_FREE char *text = NULL;
	int found = http_query_get(http_head_query(http_exchange_head(exchange)), "mode", &text);
	size_t len = found == 1 ? strlen(text) : 0;

	*ret_mode = -1;
	if (found == 0)
		return true;
	if (len < 1 || len > 5 || strspn(text, "01234567") != len || strtol(text, NULL, 8) > 07777) {
		answer_error(exchange, 422, "invalid", "mode must be octal, at most 7777");
		return false;
	}
	*ret_mode = (int)strtol(text, NULL, 8);
	return true;
}

static bool
files_flag(struct http_exchange *exchange, const char *name, bool *ret)
{
	int64_t value = *ret;

	if (!query_int(exchange, name, 1, &value))
		return false;
	*ret = value != 0;
	return true;
}

static char *
files_header(struct http_exchange *exchange, const char *name)
{
	const char *value = http_head_header(http_exchange_head(exchange), name);

	return value != NULL ? alloc_string(value) : NULL;
}

/* False: answered. */
static bool
files_read(struct http_exchange *exchange, const struct files_route *route, struct file_call *call)
{
	call->follow = true;
	call->limit = INT64_MAX;
	call->head = http_head_method(http_exchange_head(exchange)) == HTTP_HEAD;
	call->range = files_header(exchange, "Range");
	call->if_range = files_header(exchange, "If-Range");
	call->if_none_match = files_header(exchange, "If-None-Match");
	return query_text(exchange, route->from, true, &call->path) &&
		(!route->takes_to || query_text(exchange, "to", true, &call->to)) &&
		query_text(exchange, "after", false, &call->after) && files_mode(exchange, &call->mode) &&
		files_flag(exchange, "fsync", &call->sync) && files_flag(exchange, "follow", &call->follow) &&
		files_flag(exchange, "parents", &call->parents) &&
		files_flag(exchange, "overwrite", &call->overwrite) &&
		files_flag(exchange, "recursive", &call->recursive) &&
		query_int(exchange, "limit", INT64_MAX, &call->limit);
}

void
files_serve(struct helper_set *set, struct http_exchange *exchange, const char *rest)
{
	const struct files_route *route = files_find(exchange, rest);
	AUTO_FREE char *user = NULL;
	struct file_call *call;

	if (route == NULL || !query_user(exchange, &user))
		return;
	call = alloc_zero(1, sizeof *call);
	if (!files_read(exchange, route, call)) {
		file_call_free(call);
		return;
	}
	helper_start(set, exchange,
		&(struct helper_call){
			.run = route->run,
			.arg = call,
			.free_arg = file_call_free,
			.user = user,
		});
}
