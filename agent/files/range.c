/* range.c - one range of bytes; anything else is answered with the whole. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/range.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Digits at *at; beyond 64 bits it is as far as can be. False: there are none. */
static bool
range_number(const char **at, int64_t *ret)
{
	const char *p = *at;
	int64_t value = 0;

	for (; *p >= '0' && *p <= '9'; p++)
		value = value > (INT64_MAX - 9) / 10 ? INT64_MAX / 10 : value * 10 + (*p - '0');
	if (p == *at)
		return false;
	*at = p;
	*ret = value;
	return true;
}

enum range_kind { RANGE_NONE, RANGE_PART, RANGE_OUTSIDE };

static enum range_kind
range_suffix(const char *at, int64_t size, struct range *ret)
{
	int64_t count;

	if (!range_number(&at, &count) || at[strspn(at, " \t")] != '\0')
		return RANGE_NONE;
	if (count == 0 || size == 0)
		return RANGE_OUTSIDE;
	count = count < size ? count : size;
	*ret = (struct range){ size - count, count };
	return RANGE_PART;
}

static enum range_kind
range_read(const char *text, int64_t size, struct range *ret)
{
	int64_t first, last = INT64_MAX;

	if (strncasecmp(text, "bytes=", 6) != 0)
		return RANGE_NONE;
	text += 6;
	text += strspn(text, " \t");
	if (*text == '-')
		return range_suffix(text + 1, size, ret);
	if (!range_number(&text, &first) || *text++ != '-')
		return RANGE_NONE;
	if (*text >= '0' && *text <= '9' && (!range_number(&text, &last) || last < first))
		return RANGE_NONE;
	if (text[strspn(text, " \t")] != '\0')
		return RANGE_NONE;
	if (first >= size)
		return RANGE_OUTSIDE;
	last = last < size - 1 ? last : size - 1;
	*ret = (struct range){ first, last - first + 1 };
	return RANGE_PART;
}

/* Weak comparison, as If-None-Match wants it: a list of tags, or '*'. */
static bool
range_matches(const char *list, const char *etag)
{
	size_t len = strlen(etag);

	for (const char *at = list; *at != '\0';) {
		at += strspn(at, " \t,");
		if (*at == '*')
			return true;
		if (strncmp(at, "W/", 2) == 0)
			at += 2;
		if (strncmp(at, etag, len) == 0)
			return true;
		if (*at == '"')
			at += strcspn(at + 1, "\"") + 1;
		at += strcspn(at, ",");
	}
	return false;
}

int
range_decide(const struct range_ask *ask, const char *etag, int64_t size, struct range *ret_range)
{
	bool part = ask->range != NULL && (ask->if_range == NULL || strcmp(ask->if_range, etag) == 0);
	enum range_kind kind;

	*ret_range = (struct range){ 0, 0 };
	if (ask->if_none_match != NULL && range_matches(ask->if_none_match, etag))
		return 304;
	kind = part ? range_read(ask->range, size, ret_range) : RANGE_NONE;
	if (kind == RANGE_OUTSIDE)
		return 416;
	if (kind == RANGE_PART)
		return 206;
	*ret_range = (struct range){ 0, size };
	return 200;
}
