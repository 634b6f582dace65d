/*
 * terminal.h - one session: a program on a terminal, its output, and at most one viewer.
 *
 * It ends when its leader has: what that wrote is read to the kernel's EIO, or,
 * while background processes hold the terminal, until nothing came for a moment.
 * Without a viewer a session hangs up (HUP to all of it, the grace, KILL), unless
 * it is one to detach from. What the leader left behind when it ended by itself
 * lives on, as after a command; hanging up ends the whole tree, as canceling does.
 *
 * Nothing is read from the terminal while the viewer has not taken what was read.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TERMINAL_H
#define ORCHARD_AGENT_TERMINAL_H

#include "agent/user.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct agent_config;
struct err;
struct evbuffer;
struct event_base;
struct json_object;
struct pty_size;
struct rusage;
struct spawn_ground;
struct terminal;
struct terminal_request;
struct tree_keeper;

/* What all sessions have together. */
struct terminal_shared {
	struct event_base *base;
	const struct agent_config *config;
	const struct spawn_ground *ground;
	struct tree_keeper *keeper;
	struct user_cache users;
	int64_t replay_left; /* bytes that all replays may still take */
	int64_t input_left; /* likewise of input that programs have not taken */
	/* It has ended, and nobody will ask for it: terminal_free() it. */
	void (*on_over)(struct terminal *terminal, void *arg);
	void *arg;
};

enum { TERMINAL_INPUT_SURE = 64 << 10 /* input that may wait in a session, whatever others have */ };

struct terminal_viewer {
	void (*on_output)(void *arg); /* more can be taken, or it has ended */
	void (*on_room)(void *arg); /* terminal_input() takes more again */
	void (*on_input)(void *arg); /* less input waits: terminal_waiting() */
	void (*on_taken)(void *arg); /* another viewer has its place: it is none any more */
	void *arg;
};

/* -1: *ret_exit_code stands for it as for a command. */
int terminal_start(struct terminal_shared *shared, const struct terminal_request *request,
	struct terminal **ret_terminal, int *ret_exit_code, struct err *err) MUSTCHECK;
/* What still runs is killed; the viewer is not told. */
void terminal_free(struct terminal *terminal);

/* viewer stays the caller's until it leaves or is taken. Replaces another one. */
void terminal_attach(struct terminal *terminal, const struct terminal_viewer *viewer);
/* delivered: it has the end and the exit. on_over may be called before this returns. */
void terminal_leave(struct terminal *terminal, const struct terminal_viewer *viewer, bool delivered);

/* Output: bytes that lie together at *offset, which moves on to the oldest kept. */
size_t terminal_output(const struct terminal *terminal, uint64_t *offset, const char **ret_bytes);
/* The viewer has not taken all: nothing more is read. */
void terminal_hold(struct terminal *terminal, bool held);
/* Empties bytes. False: the terminal takes no more now, wait for on_room. */
bool terminal_input(struct terminal *terminal, struct evbuffer *bytes);
/* Bytes of input that the terminal has not taken. */
size_t terminal_waiting(const struct terminal *terminal);
void terminal_resize(struct terminal *terminal, const struct pty_size *size);
/* To the foreground process group. */
void terminal_signal(struct terminal *terminal, int sig);
/* Nobody wants it any more: it ends, and is not kept. on_over may be called before this returns. */
void terminal_hang_up(struct terminal *terminal);
/* At once, without the grace. */
void terminal_kill(struct terminal *terminal);
/* A child was waited for; true when it was the leader. */
bool terminal_on_exit(struct terminal *terminal, pid_t pid, int status, const struct rusage *usage);

const char *terminal_id(const struct terminal *terminal);
pid_t terminal_pid(const struct terminal *terminal);
bool terminal_outlives_viewers(const struct terminal *terminal);
bool terminal_has_ended(const struct terminal *terminal);
int terminal_exit_code(const struct terminal *terminal); /* of an ended one; -N: killed by signal N */
struct json_object *terminal_describe(const struct terminal *terminal);
struct json_object *terminal_usage(const struct terminal *terminal); /* of an ended one */

#endif
