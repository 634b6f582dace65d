/* fake_file_call.c - records what is asked and sent; answers when the test says so. */
/* SPDX-License-Identifier: MIT */
#include "fake_file_call.h"

#include "domain/file_call.h"
#include "fake_domain.h"
#include "http/http_parse.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct file_call {
	const struct file_call_ops *ops;
	void *arg;
	struct http_head *head;
};

struct fake_file fake_file;
static struct file_call the_call;

int
file_call_start(struct service *service, const char *tenant, const struct file_call_ask *ask,
	const struct file_call_ops *ops, void *arg, struct file_call **ret_call, struct err *err)
{
	(void)service;
	(void)tenant;
	fake.calls++;
	if (fake.fail.code != ERR_NONE) {
		*err = fake.fail;
		return -1;
	}
	fake_file = (struct fake_file){ .open = true, .length = ask->length };
	snprintf(fake_file.method, sizeof fake_file.method, "%s", ask->method);
	snprintf(fake_file.target, sizeof fake_file.target, "%s", ask->target);
	for (size_t i = 0; ask->headers != NULL && ask->headers[i] != NULL; i += 2)
		if (strcasecmp(ask->headers[i], "Range") == 0)
			snprintf(fake_file.range, sizeof fake_file.range, "%s", ask->headers[i + 1]);
	the_call = (struct file_call){ .ops = ops, .arg = arg };
	*ret_call = &the_call;
	return 0;
}

size_t
file_call_send(struct file_call *call, struct evbuffer *piece)
{
	size_t len = evbuffer_get_length(piece);
	size_t room = sizeof fake_file.body - 1 - strlen(fake_file.body);

	(void)call;
	evbuffer_copyout(piece, fake_file.body + strlen(fake_file.body), len < room ? len : room);
	evbuffer_drain(piece, len);
	fake_file.sent += len;
	return fake_file.queued;
}

void
file_call_send_end(struct file_call *call)
{
	(void)call;
	fake_file.sent_end = true;
}

void
file_call_resume(struct file_call *call)
{
	(void)call;
	fake_file.resumed++;
}

void
file_call_cancel(struct file_call *call)
{
	http_head_free(call->head);
	call->head = NULL;
	fake_file.open = false;
	fake_file.cancelled++;
}

void
fake_file_want(void)
{
	the_call.ops->wanted(the_call.arg);
}

void
fake_file_drained(void)
{
	fake_file.queued = 0;
	the_call.ops->drained(the_call.arg);
}

void
fake_file_head(const char *text)
{
	struct evbuffer *in = evbuffer_new();
	struct http_parser parser;

	evbuffer_add(in, text, strlen(text));
	http_parser_init(&parser, HTTP_SIDE_RESPONSE, 4096);
	if (http_parser_head(&parser, in, &the_call.head) != 1)
		abort();
	evbuffer_free(in);
	the_call.ops->head(the_call.head, the_call.arg);
}

size_t
fake_file_data(const void *data, size_t len)
{
	struct evbuffer *bytes = evbuffer_new();
	size_t left;

	evbuffer_add(bytes, data, len);
	the_call.ops->data(bytes, the_call.arg);
	left = evbuffer_get_length(bytes);
	evbuffer_free(bytes);
	return left;
}

void
fake_file_end(const struct err *why)
{
	struct http_head *head = the_call.head;

	the_call.head = NULL;
	fake_file.open = false;
	the_call.ops->end(why, the_call.arg);
	http_head_free(head);
}
