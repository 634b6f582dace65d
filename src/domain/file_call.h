/*
 * file_call.h - a call that goes straight to a sandbox's agent, its bodies passed through: files, archives.
 *
 * It waits until the sandbox can be worked in, never for its commands, and counts as use of it. Nothing of it is
 * recorded: what the agent has not answered has to be asked again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_FILE_CALL_H
#define ORCHARD_DOMAIN_FILE_CALL_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct evbuffer;
struct file_call;
struct http_head;
struct service;

enum { FILE_CALL_HIGH = 256 * 1024, FILE_CALL_HEADERS = 6 };

/* Copied. */
struct file_call_ask {
	const char *sandbox_id;
	const char *method, *target; /* as the agent's protocol has them */
	const char *content_type; /* NULL: none */
	const char *const *headers; /* at most FILE_CALL_HEADERS pairs, with NULL behind; NULL: none */
	int64_t length; /* of the body; -1: not known, 0: none */
};

/* Any of them may cancel the call; after end it is gone. */
struct file_call_ops {
	void (*wanted)(void *arg); /* the agent takes the body: send */
	void (*drained)(void *arg);
	void (*head)(const struct http_head *head, void *arg); /* the agent's answer begins; lives until end */
	void (*data)(
		struct evbuffer *data, void *arg); /* what is left in it stops the rest until file_call_resume() */
	/* NULL: all of the answer has come. Before head: what sandbox_ready() may say, ERR_BUSY, ERR_AGENT_UNREACHABLE. */
	void (*end)(const struct err *why, void *arg);
};

/* Never calls back before it returns. ERR_NOT_FOUND, ERR_BUSY. */
int file_call_start(struct service *service, const char *tenant, const struct file_call_ask *ask,
	const struct file_call_ops *ops, void *arg, struct file_call **ret_call, struct err *err) MUSTCHECK;
/* Takes the bytes; how many are queued now: over FILE_CALL_HIGH wait for drained. */
size_t file_call_send(struct file_call *call, struct evbuffer *piece);
void file_call_send_end(struct file_call *call);
void file_call_resume(struct file_call *call);
/* The agent sees its connection go, and undoes what was begun. */
void file_call_cancel(struct file_call *call);

#endif
