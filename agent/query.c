/* query.c - numbers and ids of a query. */
/* SPDX-License-Identifier: MIT */
#include "agent/query.h"

#include "agent/answer.h"
#include "agent/user.h"
#include "base/err.h"
#include "base/id.h"
#include "http/http_parser.h"
#include "http/http_server.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static int
query_get(struct http_exchange *exchange, const char *name, char **ret_value)
{
	return http_query_get(http_head_query(http_exchange_head(exchange)), name, ret_value);
}

static bool
query_refuse(struct http_exchange *exchange, const char *name, const char *what)
{
	char detail[128];

	snprintf(detail, sizeof detail, "%s must be %s", name, what);
	answer_error(exchange, 422, "invalid", detail);
	return false;
}

bool
query_int(struct http_exchange *exchange, const char *name, int64_t max, int64_t *ret)
{
	AUTO_FREE char *text = NULL;
	int found = query_get(exchange, name, &text);
	char *end = NULL;
	long long value = 0;

	if (found == 0)
		return true;
	if (found == 1)
		value = strtoll(text, &end, 10);
	if (found < 0 || !isdigit((unsigned char)text[0]) || *end != '\0')
		return query_refuse(exchange, name, "an integer of at least 0");
	*ret = value > max ? max : value;
	return true;
}

bool
query_text(struct http_exchange *exchange, const char *name, bool required, char **ret)
{
	AUTO_FREE char *text = NULL;
	int found = query_get(exchange, name, &text);

	if (found < 0)
		return query_refuse(exchange, name, "given once, percent-encoded, without NUL");
	if (required && (found == 0 || *text == '\0'))
		return query_refuse(exchange, name, "given, and not empty");
	if (found == 1)
		*ret = STEAL_PTR(text);
	return true;
}

bool
query_user(struct http_exchange *exchange, char **ret)
{
	struct err err;

	if (!query_text(exchange, "user", false, ret))
		return false;
	if (*ret == NULL || user_check(*ret, &err) == 0)
		return true;
	answer_error(exchange, 422, "invalid", err.msg);
	return false;
}

bool
query_uuid(struct http_exchange *exchange, const char *name, uint8_t ret_id[16])
{
	AUTO_FREE char *text = NULL;

	if (query_get(exchange, name, &text) == 1 && id_uuid_bytes(text, ret_id))
		return true;
	return query_refuse(exchange, name, "a UUID in lower case");
}
