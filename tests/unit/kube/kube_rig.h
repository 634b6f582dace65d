/* kube_rig.h - for tests: an API server of one's own whose faults are the test's, on the test's loop. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_KUBE_RIG_H
#define ORCHARD_TESTS_KUBE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bufferevent;
struct event_base;
struct kube_config;
struct rig;

/* One that came whole. */
struct rig_request {
	struct rig *rig;
	struct bufferevent *bev; /* valid until rig_close() or the client's end */
	uint32_t number; /* of all, from 0 */
	uint32_t connection; /* that it came on, from 0 */
	char line[1024]; /* "GET /path" */
	char token[256]; /* "" : none */
	char body[4096];
	int64_t at_ms;
};

typedef void rig_f(const struct rig_request *request, void *arg);

enum { RIG_LOG_MAX = 512 };

struct rig {
	struct event_base *base;
	char dir[64]; /* of its own, removed at the end */
	uint16_t port;
	rig_f *handle;
	void *arg;
	uint32_t requests, connections, open; /* open: connections now */
	struct {
		char line[1024];
		char token[256];
		int64_t at_ms;
	} log[RIG_LOG_MAX];
	struct rig_impl *impl;
};

void rig_start(struct rig *rig, rig_f *handle, void *arg);
void rig_stop(struct rig *rig);
/* Nobody listens any more. */
void rig_deafen(struct rig *rig);

/* headers: lines with their ends, or "". */
void rig_answer(const struct rig_request *request, int status, const char *headers, const char *body);
/* A Status of the API server. */
void rig_refuse(const struct rig_request *request, int status, const char *reason, const char *headers);
/* The head of a stream that ends when the connection does; or, in chunks, by rig_chunk(bev, ""). */
void rig_stream(const struct rig_request *request);
void rig_chunks(const struct rig_request *request);
void rig_send(struct bufferevent *bev, const char *text);
void rig_chunk(struct bufferevent *bev, const char *text);
/* After what was sent has gone out; or at once, by a reset. */
void rig_close(struct bufferevent *bev);
void rig_reset(struct bufferevent *bev);

/* Turns the loop until *flag, or until *count is at least that; fails the test when that does not come. */
void rig_until(struct rig *rig, const bool *flag);
void rig_until_count(struct rig *rig, const uint32_t *count, uint32_t at_least);
/* For so long, whatever happens. */
void rig_turn(struct rig *rig, int64_t ms);

/* Writes a file into the rig's directory; gives its path, in a buffer that the next call reuses. */
const char *rig_file(struct rig *rig, const char *name, const char *text);
/* A configuration for http://127.0.0.1:PORT with these lines of a user ("token: x\n"), or NULL. */
struct kube_config *rig_config(struct rig *rig, const char *user);
/* For https://127.0.0.1:PORT, with more entries of the cluster and of the user, each with a comma before it. */
struct kube_config *rig_config_tls(struct rig *rig, uint16_t port, const char *cluster, const char *user);
/* From the whole text of a kubeconfig. */
struct kube_config *rig_config_text(struct rig *rig, const char *text);

#endif
