/* file_target.c - every byte of a path reaches the agent as it came. */
/* SPDX-License-Identifier: MIT */
#include "worker/file_target.h"

#include "http/http_server.h"
#include "worker/query.h"
#include "worker/request.h"
#include "worker/respond.h"

#include <stdlib.h>
#include <string.h>

static void
target_put(struct file_target *target, char c)
{
	if (target->len + 1 < sizeof target->text)
		target->text[target->len++] = c;
	else
		target->too_long = true;
	target->text[target->len] = '\0';
}

static void
target_put_text(struct file_target *target, const char *text)
{
	for (; *text != '\0'; text++)
		target_put(target, *text);
}

void
file_target_init(struct file_target *target, const char *path)
{
	target->len = 0;
	target->parameters = target->too_long = false;
	target_put_text(target, path);
}

static bool
is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' || c == '.' ||
		c == '-' || c == '_' || c == '~';
}

void
file_target_add(struct file_target *target, const char *name, const char *value)
{
	static const char hex[] = "0123456789ABCDEF";

	if (value == NULL)
		return;
	target_put(target, target->parameters ? '&' : '?');
	target->parameters = true;
	target_put_text(target, name);
	target_put(target, '=');
	for (; *value != '\0'; value++) {
		unsigned char c = (unsigned char)*value;

		if (is_plain(c)) {
			target_put(target, *value);
			continue;
		}
		target_put(target, '%');
		target_put(target, hex[c >> 4]);
		target_put(target, hex[c & 15]);
	}
}

void
file_target_flag(struct file_target *target, const char *name, bool value)
{
	file_target_add(target, name, value ? "1" : "0");
}

bool
file_target_take(struct request *request, struct file_target *target, const char *name)
{
	AUTO_FREE char *text = NULL;

	if (!query_text(request, name, &text))
		return false;
	file_target_add(target, name, text);
	return true;
}

bool
file_target_require(struct request *request, struct file_target *target, const char *name)
{
	AUTO_FREE char *text = NULL;

	if (!query_text(request, name, &text))
		return false;
	if (text == NULL || *text == '\0')
		return query_refuse(request, name, text == NULL ? "missing" : "value_error",
			text == NULL ? "is needed" : "must not be empty");
	file_target_add(target, name, text);
	return true;
}

bool
file_target_choose(
	struct request *request, struct file_target *target, const char *name, const char *const words[3])
{
	AUTO_FREE char *text = NULL;

	if (!query_text(request, name, &text))
		return false;
	if (text != NULL && strcmp(text, words[0]) != 0 && strcmp(text, words[1]) != 0)
		return query_refuse(request, name, "value_error", words[2]);
	file_target_add(target, name, text);
	return true;
}

bool
file_target_check(struct request *request, const struct file_target *target)
{
	if (!target->too_long)
		return true;
	respond_problem(request, PROBLEM_NAME_TOO_LONG, "the path is too long; a path has at most 4095 bytes");
	return false;
}

bool
file_target_whole(struct request *request)
{
	static const char *const names[] = { "Content-Range", "If-Match", "If-None-Match", "If-Unmodified-Since" };
	const struct http_head *head = http_exchange_head(request->exchange);

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct respond_fault fault = { PROBLEM_INVALID_REQUEST, "header", names[i], "value_error" };

		if (http_head_header(head, names[i]) == NULL)
			continue;
		respond_fault(
			request, &fault, "is not done here: an upload is always whole, and without a condition");
		return false;
	}
	return true;
}

bool
file_mode_is_valid(const char *text)
{
	size_t len = strlen(text);

	return len >= 1 && len <= 5 && strspn(text, "01234567") == len && strtol(text, NULL, 8) <= 07777;
}
