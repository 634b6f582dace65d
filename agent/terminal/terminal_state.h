/* terminal_state.h - the insides of a session, private to terminal.c, terminal_end.c and terminal_describe.c. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_TERMINAL_STATE_H
#define ORCHARD_AGENT_TERMINAL_STATE_H

#include "agent/terminal/pty.h"
#include "agent/terminal/replay.h"
#include "agent/terminal/terminal.h"
#include "agent/tree.h"
#include "base/id.h"

struct event;

enum terminal_phase { TERMINAL_RUNNING, TERMINAL_ASKED, TERMINAL_KILLING, TERMINAL_STOPPED, TERMINAL_ENDED };

struct terminal {
	struct terminal_shared *shared;
	char id[ID_UUID_SIZE];
	pid_t pid;
	struct tree tree;
	struct pty_size size;
	int master, slave; /* -1: closed */
	struct event *readable, *writable, *timer;
	struct evbuffer *pending; /* input that the terminal has not taken */
	size_t charged; /* of that, to all sessions' budget */
	bool input_full; /* the viewer waits for on_room */
	struct replay replay;
	const struct terminal_viewer *viewer;
	bool held;
	bool detach;
	bool unwanted; /* not kept when it has ended */
	enum terminal_phase phase;
	int64_t limit_ms; /* end of the grace, or when killing is given up */
	int64_t tick_ms;
	bool leader_done;
	int status;
	bool emptied; /* since the leader's end: all it wrote has been read */
	uint64_t drained; /* bytes since then */
	int64_t quiet_ms; /* when bytes came last */
	int64_t drain_by_ms;
	double started_at;
	int64_t started_us;
	double wall_s, cpu_user_s, cpu_sys_s;
};

/* --- terminal.c --- */
/* As much as others leave time for; at the end of all output the master is closed. */
void terminal_read(struct terminal *terminal);
/* Nothing comes out any more, or nothing that counts. */
void terminal_close_master(struct terminal *terminal);
void terminal_tell(struct terminal *terminal); /* the viewer */

/* --- terminal_end.c --- */
void terminal_on_timer(int fd, short what, void *arg);
/* Ends the session when all of it is over. Callers touch it no more. */
void terminal_settle(struct terminal *terminal);
/* It has ended, and the last viewer is gone: kept for one more, or over. */
void terminal_keep(struct terminal *terminal);

#endif
