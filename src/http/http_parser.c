/* http_parser.c - finds the end of a head as bytes come, and takes bodies apart. */
/* SPDX-License-Identifier: MIT */
#include "http/http_parse.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include <event2/buffer.h>

void
http_parser_init(struct http_parser *parser, enum http_side side, size_t max_head)
{
	*parser = (struct http_parser){ .side = side, .max_head = max_head };
}

static int
parser_fail(struct http_parser *parser, int status, const char *detail)
{
	parser->status = status;
	parser->detail = detail;
	return -1;
}

/*
 * Looks at the bytes behind scan, up to a LF. 1: scan stands behind a CRLF. 0: no more bytes. -1: a LF or a CR
 * alone, or a NUL.
 */
static int
scan_line(struct http_parser *parser, struct evbuffer *in)
{
	struct evbuffer_ptr pos;
	struct evbuffer_iovec piece;

	while (parser->scan < evbuffer_get_length(in)) {
		evbuffer_ptr_set(in, &pos, parser->scan, EVBUFFER_PTR_SET);
		evbuffer_peek(in, -1, &pos, &piece, 1);

		const unsigned char *bytes = piece.iov_base;

		for (size_t i = 0; i < piece.iov_len; i++) {
			unsigned char c = bytes[i];
			bool after_cr = parser->last == '\r';

			/* What is wrong behind the bound is never seen, however the bytes come. */
			if (parser->state == HTTP_IN_HEAD && parser->scan > parser->max_head)
				return 0;
			if (c == '\0' || after_cr != (c == '\n'))
				return parser_fail(parser, 400, "lines must end in CR LF and hold no NUL");
			parser->last = c;
			parser->scan++;
			if (c == '\n')
				return 1;
		}
	}
	return 0;
}

static void
scan_reset(struct http_parser *parser)
{
	parser->scan = parser->line = parser->first_line = 0;
	parser->last = 0;
}

static int
head_too_large(struct http_parser *parser)
{
	if (parser->first_line == 0 && parser->side == HTTP_SIDE_REQUEST)
		return parser_fail(parser, 414, "the request line is too long");
	return parser_fail(parser, 431, "the header is too large");
}

static void
body_start(struct http_parser *parser, int64_t length)
{
	parser->length = length;
	parser->left = length > 0 ? (uint64_t)length : 0;
	parser->extensions = parser->trailer = 0;
	parser->state = length == HTTP_LENGTH_CHUNKED ? HTTP_IN_SIZE : HTTP_IN_LENGTH;
}

static int
head_take(struct http_parser *parser, struct evbuffer *in, struct http_head **ret_head)
{
	size_t len = parser->scan;
	/* The head, its path as a string of its own, and that string's NULs. */
	struct http_head *head = alloc_bytes(sizeof *head + len + parser->first_line + 2);

	memset(head, 0, offsetof(struct http_head, fields));
	evbuffer_remove(in, head->text, len);
	scan_reset(parser);
	parser->status = http_head_parse(head, len, parser->side, &parser->detail);
	if (parser->status != 0) {
		http_head_free(head);
		return -1;
	}
	body_start(parser, head->length);
	*ret_head = head;
	return 1;
}

int
http_parser_head(struct http_parser *parser, struct evbuffer *in, struct http_head **ret_head)
{
	for (;;) {
		int rc = scan_line(parser, in);

		if (rc < 0)
			return -1;
		if (parser->scan > parser->max_head)
			return head_too_large(parser);
		if (rc == 0)
			return 0;
		if (parser->scan - parser->line == 2) {
			if (parser->first_line != 0)
				return head_take(parser, in, ret_head);
			/* RFC 9112, 2.2: an empty line before a message is skipped. */
			evbuffer_drain(in, parser->scan);
			scan_reset(parser);
			continue;
		}
		if (parser->first_line == 0)
			parser->first_line = parser->scan;
		parser->line = parser->scan;
	}
}

bool
http_parser_in_head(const struct http_parser *parser)
{
	return parser->state == HTTP_IN_HEAD && parser->scan > 0;
}

void
http_parser_no_body(struct http_parser *parser)
{
	body_start(parser, 0);
}

void
http_parser_next(struct http_parser *parser)
{
	parser->state = HTTP_IN_HEAD;
}

/* A line of at most max bytes with its CRLF, copied to text without it. As scan_line. */
static int
body_line(struct http_parser *parser, struct evbuffer *in, size_t max, char *text, size_t *ret_len)
{
	int rc = scan_line(parser, in);

	if (rc < 0)
		return -1;
	if (parser->scan > max)
		return parser_fail(parser, parser->state == HTTP_IN_TRAILER ? 431 : 400,
			parser->state == HTTP_IN_TRAILER ? "the trailer is too large" : "a chunk line is too long");
	if (rc == 0)
		return 0;
	evbuffer_remove(in, text, parser->scan);
	*ret_len = parser->scan - 2;
	text[*ret_len] = '\0';
	scan_reset(parser);
	return 1;
}

static int
body_chunk_size(struct http_parser *parser, struct evbuffer *in)
{
	char line[HTTP_MAX_CHUNK_LINE];
	size_t len;
	int rc = body_line(parser, in, sizeof line, line, &len);

	if (rc <= 0)
		return rc;

	size_t digits = strspn(line, "0123456789abcdefABCDEF");
	const char *extension = line + digits + strspn(line + digits, " \t");

	if (digits == 0 || digits > 15 || (digits < len && *extension != ';') || !http_text_is_value(line, len))
		return parser_fail(parser, 400, "a chunk size is malformed");
	parser->extensions += len - digits;
	if (parser->extensions > HTTP_MAX_EXTENSIONS)
		return parser_fail(parser, 400, "too many chunk extensions");
	line[digits] = '\0';
	parser->left = strtoull(line, NULL, 16);
	parser->state = parser->left > 0 ? HTTP_IN_CHUNK : HTTP_IN_TRAILER;
	return 1;
}

/* Trailer fields are checked and forgotten. 2: that was the empty line. */
static int
body_trailer_line(struct http_parser *parser, struct evbuffer *in)
{
	char line[HTTP_MAX_TRAILER];
	size_t len;
	int rc = body_line(parser, in, sizeof line - parser->trailer, line, &len);

	if (rc <= 0)
		return rc;
	if (len == 0) {
		parser->state = HTTP_IN_HEAD;
		return 2;
	}
	parser->trailer += len + 2;

	const char *colon = strchr(line, ':');

	if (colon == NULL || !http_text_is_token(line, (size_t)(colon - line)) ||
		!http_text_is_value(colon, len - (size_t)(colon - line)))
		return parser_fail(parser, 400, "a trailer line is malformed");
	return 1;
}

static int
body_chunk_end(struct http_parser *parser, struct evbuffer *in)
{
	int rc = scan_line(parser, in);
	/* Judged as soon as it is seen, so that it does not matter how the bytes are cut. */
	bool begun = parser->scan == 0 || (parser->scan == 1 && parser->last == '\r');

	if (rc < 0 || parser->scan > 2 || (rc == 0 && !begun))
		return parser_fail(parser, 400, "a chunk is longer than its size says");
	if (rc == 0)
		return 0;
	evbuffer_drain(in, 2);
	scan_reset(parser);
	parser->state = HTTP_IN_SIZE;
	return 1;
}

/* Moves what is there of the counted bytes. 1: all of them have come. */
static int
body_counted(struct http_parser *parser, struct evbuffer *in, struct evbuffer *out, size_t *max)
{
	size_t n = evbuffer_get_length(in);

	if (n > *max)
		n = *max;
	if (n > parser->left && parser->length != HTTP_LENGTH_UNTIL_CLOSE)
		n = (size_t)parser->left;
	evbuffer_remove_buffer(in, out, n);
	*max -= n;
	if (parser->length == HTTP_LENGTH_UNTIL_CLOSE)
		return 0;
	parser->left -= n;
	return parser->left == 0;
}

int
http_parser_body(struct http_parser *parser, struct evbuffer *in, struct evbuffer *out, size_t max)
{
	for (;;) {
		int rc;

		switch (parser->state) {
		case HTTP_IN_HEAD:
			return 1;
		case HTTP_IN_LENGTH:
			rc = body_counted(parser, in, out, &max);
			if (rc > 0)
				parser->state = HTTP_IN_HEAD;
			return rc;
		case HTTP_IN_SIZE:
			rc = body_chunk_size(parser, in);
			break;
		case HTTP_IN_CHUNK:
			rc = body_counted(parser, in, out, &max);
			if (rc > 0)
				parser->state = HTTP_IN_CRLF;
			break;
		case HTTP_IN_CRLF:
			rc = body_chunk_end(parser, in);
			break;
		default:
			rc = body_trailer_line(parser, in);
			if (rc == 2)
				return 1;
			break;
		}
		if (rc <= 0)
			return rc;
	}
}
