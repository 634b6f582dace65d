/* routes.c - the parameters of `/archive`. */
/* SPDX-License-Identifier: MIT */
#include "agent/tar/archive_call.h"

#include "agent/answer.h"
#include "agent/files/helper.h"
#include "agent/query.h"
#include "base/alloc.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <stdlib.h>
#include <string.h>

static void
archive_call_free(void *arg)
{
	struct archive_call *call = arg;

	free(call->path);
	free(call);
}

/* A parameter with one word that means true, and one that is its default; false: answered. */
static bool
archive_word(struct http_exchange *exchange, const char *name, const char *off, const char *on, bool *ret)
{
	AUTO_FREE char *text = NULL, *words = NULL;

	if (!query_text(exchange, name, false, &text))
		return false;
	*ret = text != NULL && strcmp(text, on) == 0;
	if (text == NULL || *ret || strcmp(text, off) == 0)
		return true;
	words = alloc_format("%s must be %s or %s", name, off, on);
	answer_error(exchange, 422, "invalid", words);
	return false;
}

void
archive_serve(struct helper_set *set, struct http_exchange *exchange)
{
	enum http_method method = http_head_method(http_exchange_head(exchange));
	AUTO_FREE char *user = NULL;
	struct archive_call *call;

	if (method != HTTP_GET && method != HTTP_HEAD && method != HTTP_PUT) {
		answer_error(exchange, 405, "method_not_allowed", "this route takes another method");
		return;
	}
	call = alloc_zero(1, sizeof *call);
	call->head = method == HTTP_HEAD;
	if (!query_user(exchange, &user) || !query_text(exchange, "path", true, &call->path) ||
		!archive_word(exchange, "owners", "user", "keep", &call->owners) ||
		!archive_word(exchange, "links", "inside", "any", &call->any_link) ||
		!archive_word(exchange, "unreadable", "refuse", "skip", &call->skip)) {
		archive_call_free(call);
		return;
	}
	helper_start(set, exchange,
		&(struct helper_call){
			.run = method == HTTP_PUT ? archive_unpack_run : archive_pack_run,
			.arg = call,
			.free_arg = archive_call_free,
			.user = user,
		});
}
