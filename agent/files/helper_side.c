/* helper_side.c - the helper's end of the socket: blocking, message by message. */
/* SPDX-License-Identifier: MIT */
#include "agent/files/helper_side.h"
#include "agent/files/fault.h"
#include "agent/files/helper_priv.h"

#include "base/json.h"
#include "base/text.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

int64_t
helper_length(const struct helper_side *side)
{
	return side->length;
}

int
helper_cwd_errno(const struct helper_side *side)
{
	return side->cwd_errno;
}

static int
side_send(struct helper_side *side, enum helper_message kind, const void *data, size_t len)
{
	char type = (char)kind;
	struct iovec parts[2] = { { &type, 1 }, { (void *)(uintptr_t)data, len } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t sent;

	do {
		sent = sendmsg(side->fd, &message, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		side->cut = true;
	return sent < 0 ? -1 : 0;
}

/* --- the request --- */

/* The next message of the body: 1 more bytes, 0 its end, -1 cut. */
static int
side_receive(struct helper_side *side)
{
	char type = 0;
	struct iovec parts[2] = { { &type, 1 }, { side->piece, sizeof side->piece } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t got;

	if (!side->asked) {
		side->asked = true;
		if (side_send(side, HELPER_WANTS, NULL, 0) < 0)
			return -1;
	}
	do {
		got = recvmsg(side->fd, &message, 0);
	} while (got < 0 && errno == EINTR);
	if (got <= 0) {
		side->cut = true;
		return -1;
	}
	side->at = 0;
	side->have = type == HELPER_BODY ? (size_t)got - 1 : 0;
	side->body_ended = type == HELPER_BODY_END;
	return side->body_ended ? 0 : 1;
}

ssize_t
helper_read(struct helper_side *side, void *buffer, size_t size)
{
	while (side->at == side->have && !side->body_ended && !side->cut)
		if (side_receive(side) < 0)
			break;

	size_t left = side->have - side->at, len = left < size ? left : size;

	memcpy(buffer, side->piece + side->at, len);
	side->at += len;
	return len == 0 && side->cut ? -1 : (ssize_t)len;
}

/* --- the answer --- */

static void
head_add(char *head, size_t *len, const char *text)
{
	size_t size = strlen(text) + 1;

	if (*len + size > HELPER_HEAD_MAX)
		return;
	memcpy(head + *len, text, size);
	*len += size;
}

void
helper_begin(struct helper_side *side, const struct helper_head *head)
{
	struct helper_head_message fixed = { .status = head->status, .length = head->length };
	char message[HELPER_HEAD_MAX];
	size_t len = sizeof fixed;

	memset(message, 0, sizeof fixed);
	memcpy(message, &fixed, sizeof fixed);
	head_add(message, &len, head->content_type != NULL ? head->content_type : "");
	for (const char *const *header = head->headers; header != NULL && *header != NULL; header++)
		head_add(message, &len, *header);
	(void)!side_send(side, HELPER_HEAD, message, len);
}

int
helper_write(struct helper_side *side, const void *data, size_t len)
{
	const char *from = data;

	while (len > 0) {
		size_t piece = len < HELPER_PIECE ? len : HELPER_PIECE;

		if (side_send(side, HELPER_DATA, from, piece) < 0)
			return -1;
		from += piece;
		len -= piece;
	}
	return 0;
}

void
helper_end(struct helper_side *side)
{
	(void)!side_send(side, HELPER_END, NULL, 0);
}

void
helper_json(struct helper_side *side, int status, struct json_object *body)
{
	size_t len;
	AUTO_FREE char *text = json_text_names(body, &len);
	struct helper_head head = { .status = status, .content_type = "application/json", .length = (int64_t)len };

	helper_begin(side, &head);
	if (helper_write(side, text, len) == 0)
		helper_end(side);
	json_object_put(body);
}

static void
side_refuse(struct helper_side *side, int status, const char *code, char *words)
{
	struct json_object *body = json_object_new_object();

	text_utf8_mend(words);
	json_object_object_add(body, "code", json_object_new_string(code));
	json_object_object_add(body, "detail", json_object_new_string(words));
	helper_json(side, status, body);
}

void
helper_refuse(struct helper_side *side, int status, const char *code, const char *fmt, ...)
{
	char words[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(words, sizeof words, fmt, args);
	va_end(args);
	side_refuse(side, status, code, words);
}

void
helper_refuse_errno(struct helper_side *side, int errnum, const char *fmt, ...)
{
	const struct fault *fault = fault_of_errno(errnum);
	char words[768], what[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	snprintf(words, sizeof words, "%s: %s", what, fault->words);
	side_refuse(side, fault->status, fault->code, words);
}

void
helper_leave_nothing(struct helper_side *side, const char *path)
{
	(void)!side_send(side, HELPER_LEAVES, path, path != NULL ? strlen(path) : 0);
}
