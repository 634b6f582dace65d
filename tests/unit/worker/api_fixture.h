/*
 * api_fixture.h - a real REST listener on loopback, the fake domain below it, and a client.
 *
 * All in one process and one event loop: a reply is waited for by running the loop.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_API_FIXTURE_H
#define ORCHARD_TESTS_API_FIXTURE_H

#include "conf/config.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>

struct api;
struct event_base;
struct json_object;
struct shm;

struct fixture {
	struct config config;
	struct event_base *base;
	struct shm *shm;
	char shm_path[64];
	struct proc_ref self; /* a worker's slot */
	struct api *api;
	int listen_fd;
	int port;
	int client; /* the connection that fixture_call uses; -1: none */
};

struct reply {
	int status;
	char head[4096];
	char *body;
	size_t body_len;
	struct json_object *json; /* NULL when the body is none */
};

/* Settings, listener and shared memory only, for a process of its own to work with. */
void fixture_prepare(struct fixture *fixture);
void fixture_release(struct fixture *fixture);
/* cmocka's setup and teardown of each test. */
int fixture_setup(void **state);
int fixture_teardown(void **state);

int fixture_connect(struct fixture *fixture);
void fixture_send(int fd, const char *bytes);
/* The next reply on fd; head_only for HEAD. Fails the test when the connection ends first. */
struct reply fixture_reply(struct fixture *fixture, int fd, bool head_only);
void reply_fini(struct reply *reply);
#define AUTO_REPLY __attribute__((cleanup(reply_fini))) struct reply

/* One request with the key, and its reply; body NULL: none. */
struct reply fixture_call(struct fixture *fixture, const char *method, const char *path, const char *body);
/* Sends it on the fixture's connection without waiting. */
void fixture_start(struct fixture *fixture, const char *method, const char *path, const char *body);
void fixture_run_once(struct fixture *fixture);
/* Runs the loop until *flag is wanted. */
void fixture_run_until(struct fixture *fixture, const bool *flag, bool wanted);

/* A header's value in a static buffer, or NULL. */
const char *reply_header(const struct reply *reply, const char *name);
/* A member's text, "" when it is null or missing. */
const char *reply_text(const struct reply *reply, const char *member);
/* The status, and that the body is a whole error with that code. */
void assert_problem(const struct reply *reply, int status, const char *code);
/* 422 with one fault at place, field. */
void assert_fault(const struct reply *reply, const char *place, const char *field);

#endif
