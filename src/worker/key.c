/* key.c - the Idempotency-Key header: 1 to 255 printable ASCII characters, once, or 422. */
/* SPDX-License-Identifier: MIT */
#include "worker/key.h"

#include "domain/idempotency.h"
#include "http/http_server.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <string.h>

static const char header[] = "Idempotency-Key";

static const char *
key_fault(const struct http_head *head, const char *name)
{
	size_t len = strlen(name);

	if (http_head_header_count(head, header) > 1)
		return "is given more than once";
	if (len == 0 || len > IDEMPOTENCY_KEY_MAX)
		return "must have 1 to 255 characters";
	for (const char *p = name; *p != '\0'; p++)
		if (*p < ' ' || *p > '~')
			return "must be printable ASCII";
	return NULL;
}

bool
key_read(struct request *request, const char *const *skipped, struct idempotency_key *ret_key)
{
	static const struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "header", header, "value_error" };
	const struct http_head *head = http_exchange_head(request->exchange);
	const char *name = http_head_header(head, header), *wrong;

	ret_key->name = NULL;
	if (name == NULL)
		return true;
	wrong = key_fault(head, name);
	if (wrong != NULL) {
		respond_fault(request, &fault, "%s", wrong);
		return false;
	}
	ret_key->name = name;
	idempotency_digest(
		request->match.route->pattern, request->match.id, request->body, skipped, ret_key->digest);
	return true;
}
