/*
 * helper_priv.h - the insides of helpers: their messages, and the two ends of their sockets.
 *
 * Agent and helper share one SEQPACKET socket; a message is one byte that says what it is, and its content.
 * The end of file is no message: a helper that sees it before HELPER_BODY_END knows that its body was cut, the
 * agent that sees it before HELPER_END that the answer was.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FILES_HELPER_PRIV_H
#define ORCHARD_AGENT_FILES_HELPER_PRIV_H

#include "agent/files/helper.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* A piece and what the agent's buffers put before it stay below the size that malloc takes from the kernel. */
enum { HELPER_PIECE = 32 * 1024 - 256, HELPER_HEAD_MAX = 8 * 1024 };

enum helper_message {
	HELPER_BODY = 'B', /* to the helper: bytes of the body */
	HELPER_BODY_END = 'E',
	HELPER_WANTS = 'W', /* from the helper: the body, please */
	HELPER_HEAD = 'H', /* struct helper_head_message, content type, names and values, each with its NUL */
	HELPER_DATA = 'D',
	HELPER_END = 'Z',
	HELPER_LEAVES = 'T' /* a path, or nothing */
};

struct helper_head_message {
	int32_t status;
	int64_t length;
};

struct event;
struct user;

/* --- the agent's end --- */
struct helper {
	TAILQ_ENTRY(helper) link; /* of the waiting or the running */
	struct helper_set *set;
	struct helper_call call;
	struct http_exchange *exchange; /* NULL: nobody waits for an answer (any more) */
	char *user;
	pid_t pid; /* 0: waits for its turn */
	int fd; /* -1: closed */
	struct event *readable, *writable, *kill_timer;
	int status; /* of its end */
	bool exited;
	bool answering; /* the head of the answer is out */
	bool body_asked, body_ended, end_sent;
	bool disk_full; /* why it is being ended */
	char *leaves; /* removed if it ends before its answer is whole; NULL: nothing */
};

/* helper.c */
/*
 * Nothing more is to be said between the two. Ends the process if it does not end by itself; if it has, the helper
 * is gone when this returns.
 */
void helper_close(struct helper *helper);

/* helper_relay.c: takes the socket. */
void helper_relay_start(struct helper *helper, struct event_base *base, int fd);
void helper_relay_stop(struct helper *helper);

/* --- helper_run.c: the child, from the fork to its end --- */
struct helper_ground {
	const struct spawn_ground *spawn;
	const struct agent_config *config;
	const struct user *user;
	int fd; /* its end of the socket */
	int64_t length; /* of the body */
};
void helper_run(const struct helper_ground *ground, const struct helper_call *call) __attribute__((noreturn));

/* --- helper_side.c --- */
struct helper_side {
	int fd;
	int64_t length;
	int cwd_errno;
	bool asked, body_ended, cut;
	size_t at, have; /* of piece */
	char piece[HELPER_PIECE];
};

#endif
