/*
 * client.h - requests to the server, one after the other or side by side.
 *
 * client_call() is what commands use: it sends, waits, tries again what may be tried again, and puts a refusal into
 * words. client_start(), client_step() and client_end() are its parts, for who has several requests under way.
 * After a refusal err.code says what kind: ERR_NOT_FOUND, ERR_DENIED... ERR_UNAVAILABLE: there was no answer.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_CLIENT_CLIENT_H
#define ORCHARDCTL_CLIENT_CLIENT_H

#include "base/cleanup.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct client;
struct json_object;
struct pollfd;
struct server;
struct signals;
struct transfer;

/* All of it is borrowed, and must stay as long as the request is under way. */
struct request {
	const char *method; /* NULL: GET */
	const char *path; /* encoded, with its query; see path_format() */
	struct json_object *body;
	const void *data; /* a body of raw bytes */
	size_t data_len;
	/* A body that is read piece by piece: 0 is its end, CLIENT_READ_FAILED gives up. Never sent a second time. */
	size_t (*read)(void *buf, size_t size, void *arg);
	int64_t read_len; /* -1: not known */
	/* Takes a good answer's body as it comes, which then is not in the answer; not 0 gives up. */
	int (*on_body)(const void *data, size_t len, void *arg);
	void *arg;
	const char *const *headers; /* "Name: value"; ends with NULL. NULL: none */
	bool once; /* with an Idempotency-Key: all tries together do it once */
	bool no_retry; /* it reaches the server once at most */
	double silence_s; /* without a byte for so long there is no answer; 0: 90 */
};

enum { CLIENT_READ_FAILED = 0x10000000 };

struct answer {
	long status; /* 0: there was none */
	struct json_object *json; /* owned; NULL when the body is none */
	char *body; /* owned, a NUL behind; NULL: none */
	size_t len;
	char *head; /* owned; see answer_header() */
	char code[48]; /* of a refusal: "not_found" */
	double retry_after; /* seconds; 0: not told */
};

/* signals: when one comes, client_call() gives up; may be NULL. Aborts when libcurl has no memory. */
struct client *client_create(const struct server *server, double retry_seconds, bool quiet);
void client_close(struct client *client);
void client_watch_signals(struct client *client, struct signals *signals);

/* 0: the server answered 2xx. *ret_answer is always to be freed by answer_fini(); NULL: of no interest. */
int client_call(
	struct client *client, const struct request *request, struct answer *ret_answer, struct err *err) MUSTCHECK;
/* GET path; a good answer's JSON, owned by the caller, or NULL. */
struct json_object *client_get(struct client *client, const char *path, struct err *err) MUSTCHECK;
void answer_fini(struct answer *answer);
#define AUTO_ANSWER __attribute__((cleanup(answer_fini))) struct answer

/* The value of a header of the answer, which may be under way; malloc'ed, NULL: it has none. */
char *answer_header(const struct answer *answer, const char *name);

/* A request that is sent once, while others are. answer must outlive it; before client_end() it holds what has come. */
struct transfer *
client_start(struct client *client, const struct request *request, const char *key, struct answer *answer);
/* Lets all that were started go on, and waits for them, for fds and for a signal, at most timeout_ms. */
void client_step(struct client *client, struct pollfd *fds, unsigned count, int timeout_ms);
bool transfer_is_done(const struct transfer *transfer);
/* Breaks it off if it is under way, frees it; what client_call() would say of it. *ret_again: it may be sent again. */
int client_end(struct transfer *transfer, bool *ret_again, struct err *err);

/* How long to wait before the next try, in milliseconds; -1: the time for tries is over. */
struct retry {
	int64_t end_ms;
	double pause_s;
};
void retry_start(struct retry *retry, double seconds);
int64_t retry_next(struct retry *retry, double asked_s);
/* Waits; false: a signal came. */
bool client_pause(struct client *client, int64_t ms);

#endif
