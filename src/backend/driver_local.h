/* driver_local.h - the local driver's requests; private to driver_local.c and driver_local_answer.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_DRIVER_LOCAL_H
#define ORCHARD_BACKEND_DRIVER_LOCAL_H

#include "backend/driver.h"
#include "ipc/spawn_msg.h"

#include <stdint.h>
#include <sys/queue.h>
#include <sys/un.h>

struct event;
struct evbuffer;

/* Any answer fits. */
union local_answer {
	struct spawn_header head;
	struct spawn_reply reply;
	struct spawn_item item;
	struct spawn_host host;
	struct spawn_usage usage;
	struct spawn_piece piece;
};

struct local_request {
	TAILQ_ENTRY(local_request) link;
	uint32_t op;
	uint64_t seq;
	bool sent; /* on this connection */
	bool broken; /* its connection broke; what to do about it comes next */
	unsigned breaks; /* how often it did */
	int64_t give_up_ms; /* while it is not sent */
	driver_progress_f *progress;
	driver_created_f *created;
	driver_done_f *done;
	driver_item_f *item;
	driver_host_f *host;
	driver_usage_f *usage;
	driver_resources_f *resources;
	struct evbuffer *text; /* what came of them; NULL: nobody asked for any */
	void *arg;
	size_t len;
	char data[]; /* the message */
};

struct local {
	struct driver driver;
	struct event_base *base;
	char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
	int fd; /* -1: not connected */
	struct event *readable, *writable, *retry;
	int64_t pause_ms;
	uint64_t next_seq;
	driver_item_f *gone;
	void *gone_arg;
	bool gone_asked; /* on this connection */
	TAILQ_HEAD(local_request_queue, local_request) requests;
};

/* Takes it off the queue, calls it back and frees it. */
void local_request_end(
	struct local *local, struct local_request *request, const struct spawn_reply *reply, const struct err *why);
/* Off the queue already. */
void local_request_free(struct local_request *request);
/* How long an answer of that kind is; 0: there is none. */
size_t local_answer_size(uint32_t op);
/* Hands an answer or event on to whom it is for; that one may change the queue, or free the driver's requests. */
void local_on_answer(struct local *local, const union local_answer *answer);

#endif
