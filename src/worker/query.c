/* query.c - reads query parameters; what is not exactly right is 422. */
/* SPDX-License-Identifier: MIT */
#include "worker/query.h"

#include "conf/config.h"
#include "http/http_server.h"
#include "worker/api.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <errno.h>
#include <math.h>
#include <string.h>

bool
query_refuse(struct request *request, const char *name, const char *type, const char *words)
{
	struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "query", name, type };

	respond_fault(request, &fault, "%s", words);
	return false;
}

static bool
query_fault(struct request *request, const char *name, const char *words)
{
	return query_refuse(request, name, "value_error", words);
}

bool
query_text(struct request *request, const char *name, char **ret)
{
	const char *query = http_head_query(http_exchange_head(request->exchange));

	if (http_query_get(query, name, ret) >= 0)
		return true;
	return query_fault(request, name, "is given twice, not validly percent-encoded, or holds NUL");
}

static bool
parse_limit(const char *text, uint32_t max, uint32_t *ret)
{
	char *end;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno != 0 || *end != '\0' || value < 1 || value > max)
		return false;
	*ret = (uint32_t)value;
	return true;
}

bool
query_limit(struct request *request, uint32_t max, uint32_t *ret)
{
	AUTO_FREE char *text = NULL;
	struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "query", "limit", "value_error" };

	if (!query_text(request, "limit", &text))
		return false;
	if (text == NULL || parse_limit(text, max, ret))
		return true;
	respond_fault(request, &fault, "must be a whole number from 1 to %u", max);
	return false;
}

bool
query_parse_count(const char *text, int64_t min, int64_t *ret)
{
	size_t len = strspn(text, "0123456789");
	unsigned long long value;

	if (len == 0 || len > 16 || text[len] != '\0')
		return false;
	value = strtoull(text, NULL, 10);
	if (value > QUERY_MAX_OFFSET || (int64_t)value < min)
		return false;
	*ret = (int64_t)value;
	return true;
}

bool
query_offset(struct request *request, const char *name, int64_t *ret)
{
	AUTO_FREE char *text = NULL;

	if (!query_text(request, name, &text))
		return false;
	if (text == NULL || query_parse_count(text, 0, ret))
		return true;
	return query_fault(request, name, "must be a whole number, 0 or more");
}

bool
query_flag(struct request *request, const char *name, bool *ret)
{
	AUTO_FREE char *text = NULL;

	if (!query_text(request, name, &text))
		return false;
	if (text == NULL)
		return true;
	if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
		return query_fault(request, name, "must be 0 or 1");
	*ret = text[0] == '1';
	return true;
}

/* No sign, no hexadecimal, no "inf": digits, a point, an exponent. */
static bool
parse_seconds(const char *text, double *ret)
{
	char *end;
	double value;

	if (strspn(text, "0123456789.eE+-") != strlen(text) || *text == '-' || *text == '+')
		return false;
	value = strtod(text, &end);
	if (end == text || *end != '\0' || !isfinite(value))
		return false;
	*ret = value;
	return true;
}

bool
query_timeout_ms(struct request *request, int64_t *ret)
{
	AUTO_FREE char *text = NULL;
	double max = (double)request->api->config->max_wait_seconds, seconds = (double)*ret / 1000;

	if (!query_text(request, "timeout", &text))
		return false;
	if (text != NULL && !parse_seconds(text, &seconds))
		return query_fault(request, "timeout", "must be a number of seconds, 0 or more");
	*ret = (int64_t)ceil(fmin(seconds, max) * 1000);
	return true;
}
