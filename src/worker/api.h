/*
 * api.h - the REST API of one worker: its listener, its open requests, and what handlers work with.
 *
 * Every request goes the same way: route, key, id, body, handler. The members are for the
 * handlers to read; only api.c changes them.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_API_H
#define ORCHARD_WORKER_API_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct cluster;
struct config;
struct err;
struct event_base;
struct http_server;
struct request;
struct service;
struct shm;

/* All borrowed; they must outlive the api. */
struct api_options {
	struct event_base *base;
	int listen_fd;
	int terminal_fd; /* where terminals are offered to a gateway */
	const struct config *config;
	struct service *service;
	struct cluster *cluster; /* NULL without use_redis */
	struct shm *shm;
	struct proc_ref self;
};

struct api {
	const struct config *config;
	struct service *service;
	struct cluster *cluster; /* NULL without use_redis */
	struct shm *shm;
	struct proc_ref self;
	struct http_server *server;
	int listen_fd;
	int terminal_fd;
	int64_t body_bytes; /* held by all bodies; body.c changes it */
	bool draining;
	bool closing; /* connections end because this process does, not because their clients left */
	TAILQ_HEAD(request_list, request) requests; /* not answered yet */
};

int api_create(const struct api_options *options, struct api **ret_api, struct err *err) MUSTCHECK;
/*
 * No new connections; /ready says no; live streams end; other requests under way go on. Where others go on listening,
 * clients that are idle get a second to send what they have begun to.
 */
void api_drain(struct api *api);
/* Answers every request that waits with what is known now, so that its client can ask again. */
void api_end_waits(struct api *api);
uint32_t api_open_requests(const struct api *api);
/* A client may still send a request. */
bool api_hears(const struct api *api);
uint32_t api_open_connections(const struct api *api);
/* Closes everything at once; before service_free. */
void api_free(struct api *api);

/* Counts for /metrics. */
void api_count(struct api *api, enum metric metric, int64_t n);
void api_count_response(struct api *api, int status);

#endif
