/* router.c - matches a decoded path against the table, one line per route. */
/* SPDX-License-Identifier: MIT */
#include "worker/router.h"

#include "base/id.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SEGMENTS = 4 };

struct segment {
	const char *text;
	size_t len;
	char *owned; /* what text points to when it had to be decoded */
};

struct split {
	struct segment segments[MAX_SEGMENTS];
	size_t count;
};

static void
split_fini(struct split *split)
{
	for (size_t i = 0; i < split->count; i++)
		free(split->segments[i].owned);
}

static int
segment_init(struct segment *segment, const char *text, size_t len)
{
	*segment = (struct segment){ .text = text, .len = len };
	if (memchr(text, '%', len) == NULL)
		return 0;
	if (http_percent_decode(text, len, &segment->owned) != 0)
		return -1;
	segment->text = segment->owned;
	segment->len = strlen(segment->owned);
	return 0;
}

/* -1: no route can have this path. */
static int
split_path(struct split *split, const char *path)
{
	split->count = 0;
	if (*path++ != '/')
		return -1;
	while (*path != '\0') {
		size_t len = strcspn(path, "/");

		if (len == 0 || split->count == MAX_SEGMENTS)
			return -1;
		if (segment_init(&split->segments[split->count], path, len) != 0)
			return -1;
		split->count++;
		path += len;
		if (*path == '/' && *++path == '\0')
			return -1;
	}
	return 0;
}

static void
match_set_id(struct router_match *match, const char *placeholder, const struct segment *segment)
{
	match->id_kind = strncmp(placeholder, "{job}", 5) == 0 ? ROUTER_ID_JOB : ROUTER_ID_SANDBOX;
	match->id[0] = '\0';
	if (segment->len < sizeof match->id) {
		memcpy(match->id, segment->text, segment->len);
		match->id[segment->len] = '\0';
	}
}

static bool
pattern_matches(const char *pattern, const struct split *split, struct router_match *match)
{
	size_t i = 0;

	for (const char *p = pattern + 1; *p != '\0'; i++) {
		size_t len = strcspn(p, "/");

		if (i == split->count)
			return false;
		if (*p == '{')
			match_set_id(match, p, &split->segments[i]);
		else if (len != split->segments[i].len || memcmp(p, split->segments[i].text, len) != 0)
			return false;
		p += len;
		if (*p == '/')
			p++;
	}
	return i == split->count;
}

enum router_result
router_find(const struct route *routes, size_t count, enum http_method method, const char *raw_path,
	struct router_match *ret_match)
{
	struct router_match match = { 0 };
	struct split split;

	if (method == HTTP_OPTIONS && strcmp(raw_path, "*") == 0) {
		for (size_t i = 0; i < count; i++)
			match.methods |= 1u << routes[i].method;
		match.methods |= 1u << HTTP_HEAD | 1u << HTTP_OPTIONS;
		*ret_match = match;
		return ROUTER_OPTIONS;
	}
	if (split_path(&split, raw_path) != 0) {
		split_fini(&split);
		return ROUTER_NO_PATH;
	}
	for (size_t i = 0; i < count; i++) {
		struct router_match found = { 0 };

		if (!pattern_matches(routes[i].pattern, &split, &found))
			continue;
		found.route = match.route;
		found.methods = match.methods | 1u << routes[i].method;
		match = found;
		if (routes[i].method == method || (routes[i].method == HTTP_GET && method == HTTP_HEAD))
			match.route = &routes[i];
	}
	split_fini(&split);
	if (match.methods == 0)
		return ROUTER_NO_PATH;
	if (match.methods & 1u << HTTP_GET)
		match.methods |= 1u << HTTP_HEAD;
	match.methods |= 1u << HTTP_OPTIONS;
	*ret_match = match;
	if (match.route != NULL)
		return ROUTER_FOUND;
	return method == HTTP_OPTIONS ? ROUTER_OPTIONS : ROUTER_NO_METHOD;
}

bool
router_id_is_valid(const struct router_match *match)
{
	switch (match->id_kind) {
	case ROUTER_ID_SANDBOX:
		return id_is_sandbox_id(match->id);
	case ROUTER_ID_JOB:
		return id_is_uuid(match->id);
	case ROUTER_ID_NONE:
		break;
	}
	return true;
}

void
router_allow(unsigned int methods, char ret_allow[ROUTER_ALLOW_SIZE])
{
	static const char *const names[] = {
		[HTTP_GET] = "GET",
		[HTTP_HEAD] = "HEAD",
		[HTTP_POST] = "POST",
		[HTTP_PUT] = "PUT",
		[HTTP_PATCH] = "PATCH",
		[HTTP_DELETE] = "DELETE",
		[HTTP_OPTIONS] = "OPTIONS",
	};
	size_t len = 0;

	ret_allow[0] = '\0';
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (methods & 1u << i)
			len += (size_t)snprintf(
				ret_allow + len, ROUTER_ALLOW_SIZE - len, "%s%s", len > 0 ? ", " : "", names[i]);
	}
}
