/* driver_asker.h - both drivers' requests; private to driver_asker.c and driver_asker_answer.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_DRIVER_ASKER_H
#define ORCHARD_BACKEND_DRIVER_ASKER_H

#include "backend/driver.h"
#include "ipc/spawn_msg.h"

#include <stdint.h>
#include <sys/queue.h>
#include <sys/un.h>

struct event;
struct evbuffer;

/* Any answer fits. */
union asker_answer {
	struct spawn_header head;
	struct spawn_reply reply;
	struct spawn_item item;
	struct spawn_host host;
	struct spawn_usage usage;
	struct spawn_piece piece;
};

struct asker_request {
	TAILQ_ENTRY(asker_request) link;
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

struct asker {
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
	TAILQ_HEAD(asker_request_queue, asker_request) requests;
};

/* Takes it off the queue, calls it back and frees it. */
void asker_request_end(
	struct asker *asker, struct asker_request *request, const struct spawn_reply *reply, const struct err *why);
/* Off the queue already. */
void asker_request_free(struct asker_request *request);
/* How long an answer of that kind is; 0: there is none. */
size_t asker_answer_size(uint32_t op);
/* Hands an answer or event on to whom it is for; that one may change the queue, or free the driver's requests. */
void asker_on_answer(struct asker *asker, const union asker_answer *answer);

#endif
