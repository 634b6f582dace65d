/*
 * http_head.c - the start line and the fields of a message, judged as a whole.
 *
 * A head lives in one allocation: its bytes, cut into strings in place, and a
 * table of offsets. Whatever two readers could understand differently is an
 * error, because that is what request smuggling is made of.
 */
/* SPDX-License-Identifier: MIT */
#include "http/http_parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* RFC 9110 tchar. */
static const bool token_bytes[256] = {
	['!'] = true,
	['#' ... '\''] = true,
	['*'] = true,
	['+'] = true,
	['-'] = true,
	['.'] = true,
	['0' ... '9'] = true,
	['A' ... 'Z'] = true,
	['^' ... 'z'] = true,
	['|'] = true,
	['~'] = true,
};

bool
http_text_is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!token_bytes[(unsigned char)text[i]])
			return false;
	return len > 0;
}

bool
http_text_is_value(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static enum http_method
head_method(const char *name)
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

	for (int i = 0; i < HTTP_OTHER; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum http_method)i;
	return HTTP_OTHER;
}

static int
head_version(struct http_head *head, const char *text, const char **ret_detail)
{
	if (strcmp(text, "HTTP/1.1") == 0) {
		head->minor_version = 1;
		return 0;
	}
	if (strcmp(text, "HTTP/1.0") == 0) {
		head->minor_version = 0;
		return 0;
	}
	if (strncmp(text, "HTTP/", 5) == 0 && strspn(text + 5, "0123456789.") == strlen(text + 5) &&
		strlen(text) > 5) {
		*ret_detail = "only HTTP/1.0 and HTTP/1.1 are spoken here";
		return 505;
	}
	*ret_detail = "the protocol version is malformed";
	return 400;
}

/* Splits the target into path and query, copied to spare. */
static int
head_target(struct http_head *head, const char *target, char *spare, const char **ret_detail)
{
	const char *path = target;

	*ret_detail = "the request target is malformed";
	for (const char *p = target; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7f || *p == '#')
			return 400;
	if (strncasecmp(target, "http://", 7) == 0 || strncasecmp(target, "https://", 8) == 0) {
		const char *authority = strchr(target, ':') + 3;

		path = authority + strcspn(authority, "/?");
		if (path == authority)
			return 400;
	} else if (strcmp(target, "*") == 0) {
		if (head->method != HTTP_OPTIONS)
			return 400;
	} else if (*target != '/') {
		return 400;
	}

	/* OPTIONS of a server by its name alone is of the server as a whole (RFC 9112, 3.2.4). */
	if (*path == '\0' && head->method == HTTP_OPTIONS)
		path = "*";

	size_t path_len = strcspn(path, "?");

	head->path = spare;
	if (path_len == 0) {
		*spare++ = '/';
	} else {
		memcpy(spare, path, path_len);
		spare += path_len;
	}
	*spare++ = '\0';
	head->query = path[path_len] == '?' ? path + path_len + 1 : "";
	return 0;
}

static int
head_request_line(struct http_head *head, char *line, char *spare, const char **ret_detail)
{
	char *target = strchr(line, ' ');
	char *version = target == NULL ? NULL : strchr(target + 1, ' ');

	*ret_detail = "the request line is malformed";
	if (version == NULL)
		return 400;
	*target++ = '\0';
	*version++ = '\0';
	if (!http_text_is_token(line, strlen(line)))
		return 400;

	int status = head_version(head, version, ret_detail);

	if (status != 0)
		return status;
	head->method_name = line;
	head->method = head_method(line);
	head->target = target;
	if (strlen(target) > HTTP_MAX_TARGET) {
		*ret_detail = "the request target is too long";
		return 414;
	}
	return head_target(head, target, spare, ret_detail);
}

static int
head_status_line(struct http_head *head, char *line, const char **ret_detail)
{
	char *status = strchr(line, ' ');

	*ret_detail = "the status line is malformed";
	if (status == NULL)
		return 400;
	*status++ = '\0';
	if (head_version(head, line, ret_detail) != 0)
		return 400;
	if (strspn(status, "0123456789") != 3 || (status[3] != '\0' && status[3] != ' ') || status[0] < '1' ||
		status[0] > '5' || !http_text_is_value(status, strlen(status)))
		return 400;
	head->status = (status[0] - '0') * 100 + (status[1] - '0') * 10 + (status[2] - '0');
	head->method_name = head->target = head->path = head->query = "";
	return 0;
}

/* What the fields have said so far about framing. */
struct framing {
	bool has_length;
	bool chunked;
	bool close;
	bool keep_alive;
	bool upgrade; /* in Connection */
	uint32_t upgrades; /* lines */
	uint32_t hosts;
	int64_t length;
};

static int
framing_length(struct framing *framing, const char *value, const char **ret_detail)
{
	size_t len = strlen(value);

	*ret_detail = "Content-Length is malformed or given more than once";
	if (framing->has_length || len == 0 || len > 18 || strspn(value, "0123456789") != len)
		return 400;
	framing->has_length = true;
	framing->length = strtoll(value, NULL, 10);
	return 0;
}

static int
framing_coding(struct framing *framing, const char *value, const char **ret_detail)
{
	if (framing->chunked || *value == '\0') {
		*ret_detail = "Transfer-Encoding is malformed or given more than once";
		return 400;
	}
	if (strcasecmp(value, "chunked") != 0) {
		*ret_detail = "no transfer coding but chunked is supported";
		return 501;
	}
	framing->chunked = true;
	return 0;
}

static void
framing_connection(struct framing *framing, const char *value)
{
	while (*value != '\0') {
		value += strspn(value, " \t,");

		size_t len = strcspn(value, " \t,");

		if (len == 5 && strncasecmp(value, "close", 5) == 0)
			framing->close = true;
		else if (len == 10 && strncasecmp(value, "keep-alive", 10) == 0)
			framing->keep_alive = true;
		else if (len == 7 && strncasecmp(value, "upgrade", 7) == 0)
			framing->upgrade = true;
		value += len;
	}
}

static int
head_judge_field(
	struct http_head *head, struct framing *framing, const struct http_field *field, const char **ret_detail)
{
	const char *name = head->text + field->name;
	const char *value = head->text + field->value;

	switch (*name | 0x20) {
	case 'c':
		if (strcasecmp(name, "content-length") == 0)
			return framing_length(framing, value, ret_detail);
		if (strcasecmp(name, "connection") == 0)
			framing_connection(framing, value);
		if (head->status == 0 && strcasecmp(name, "content-encoding") == 0 &&
			strcasecmp(value, "identity") != 0) {
			*ret_detail =
				"no content coding is understood: send the body as it is, without Content-Encoding";
			return 415;
		}
		return 0;
	case 't':
		if (strcasecmp(name, "transfer-encoding") == 0)
			return framing_coding(framing, value, ret_detail);
		return 0;
	case 'h':
		if (strcasecmp(name, "host") == 0)
			framing->hosts++;
		return 0;
	case 'e':
		if (head->status != 0 || head->minor_version == 0 || strcasecmp(name, "expect") != 0)
			return 0;
		if (strcasecmp(value, "100-continue") != 0) {
			*ret_detail = "the only expectation understood is 100-continue";
			return 417;
		}
		head->expect_continue = true;
		return 0;
	case 'u':
		if (strcasecmp(name, "upgrade") == 0)
			framing->upgrades++;
		return 0;
	default:
		return 0;
	}
}

/* One line "name: value", cut in place; end is its CR. */
static int
head_field(struct http_head *head, char *line, char *end, const char **ret_detail)
{
	char *colon = memchr(line, ':', (size_t)(end - line));

	*ret_detail = "a header line is malformed";
	if (colon == NULL || !http_text_is_token(line, (size_t)(colon - line)))
		return 400;
	if (head->field_count == HTTP_MAX_FIELDS) {
		*ret_detail = "too many header lines";
		return 431;
	}

	char *value = colon + 1;

	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (!http_text_is_value(value, (size_t)(end - value)))
		return 400;
	*colon = '\0';
	*end = '\0';

	struct http_field *field = &head->fields[head->field_count++];

	field->name = (uint32_t)(line - head->text);
	field->value = (uint32_t)(value - head->text);
	return 0;
}

static int
head_conclude(struct http_head *head, const struct framing *framing, const char **ret_detail)
{
	bool is_request = head->status == 0;

	if (framing->chunked && (framing->has_length || head->minor_version == 0)) {
		*ret_detail = framing->has_length ? "Content-Length and Transfer-Encoding exclude each other"
						  : "HTTP/1.0 knows no Transfer-Encoding";
		return 400;
	}
	if (is_request && (framing->hosts > 1 || (framing->hosts == 0 && head->minor_version == 1))) {
		*ret_detail = "exactly one Host header is required";
		return 400;
	}
	head->keep_alive = !framing->close && (head->minor_version == 1 || framing->keep_alive);
	if (!is_request && (head->status < 200 || head->status == 204 || head->status == 304))
		head->length = 0;
	else if (framing->chunked)
		head->length = HTTP_LENGTH_CHUNKED;
	else if (framing->has_length || is_request)
		head->length = framing->length;
	else
		head->length = HTTP_LENGTH_UNTIL_CLOSE;
	if (head->length == 0)
		head->expect_continue = false;
	head->upgrade = is_request && head->method == HTTP_GET && head->minor_version == 1 && head->length == 0 &&
		framing->upgrade && framing->upgrades == 1;
	return 0;
}

int
http_head_parse(struct http_head *head, size_t len, enum http_side side, const char **ret_detail)
{
	struct framing framing = { .length = 0 };
	char *end = memchr(head->text, '\r', len);
	int status;

	*end = '\0';
	if (side == HTTP_SIDE_REQUEST)
		status = head_request_line(head, head->text, head->text + len, ret_detail);
	else
		status = head_status_line(head, head->text, ret_detail);
	for (char *line = end + 2; status == 0 && line[0] != '\r'; line = end + 2) {
		end = memchr(line, '\r', (size_t)(head->text + len - line));
		status = head_field(head, line, end, ret_detail);
		if (status == 0)
			status = head_judge_field(head, &framing, &head->fields[head->field_count - 1], ret_detail);
	}
	return status != 0 ? status : head_conclude(head, &framing, ret_detail);
}

const char *
http_head_header_at(const struct http_head *head, const char *name, uint32_t index)
{
	for (uint32_t i = 0; i < head->field_count; i++)
		if (strcasecmp(head->text + head->fields[i].name, name) == 0 && index-- == 0)
			return head->text + head->fields[i].value;
	return NULL;
}

const char *
http_head_header(const struct http_head *head, const char *name)
{
	return http_head_header_at(head, name, 0);
}

uint32_t
http_head_header_count(const struct http_head *head, const char *name)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < head->field_count; i++)
		n += strcasecmp(head->text + head->fields[i].name, name) == 0;
	return n;
}

enum http_method
http_head_method(const struct http_head *head)
{
	return head->method;
}

const char *
http_head_method_name(const struct http_head *head)
{
	return head->method_name;
}

const char *
http_head_target(const struct http_head *head)
{
	return head->target;
}

const char *
http_head_path(const struct http_head *head)
{
	return head->path;
}

const char *
http_head_query(const struct http_head *head)
{
	return head->query;
}

const char *
http_head_upgrade(const struct http_head *head)
{
	const char *protocol = head->upgrade ? http_head_header(head, "Upgrade") : NULL;

	return protocol != NULL && http_text_is_token(protocol, strlen(protocol)) ? protocol : NULL;
}

int
http_head_status(const struct http_head *head)
{
	return head->status;
}

int
http_head_minor_version(const struct http_head *head)
{
	return head->minor_version;
}

void
http_head_free(struct http_head *head)
{
	free(head);
}
