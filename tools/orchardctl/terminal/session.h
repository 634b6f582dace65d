/*
 * session.h - one terminal session as its three sides share it: ours (session_tty.c), the server's (session_link.c),
 * and the loop with its times (session.c). Private to terminal/.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_SESSION_H
#define ORCHARDCTL_TERMINAL_SESSION_H

#include "base/id.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/terminal/keys.h"
#include "orchardctl/terminal/link.h"
#include "orchardctl/terminal/screen.h"
#include "orchardctl/terminal/terminal.h"
#include "orchardctl/terminal/tty.h"

#include <stdint.h>

enum {
	SESSION_HIGH = 256 * 1024,
	SESSION_LOW = 64 * 1024 /* bytes waiting in one direction, then the other rests */
};

struct session {
	struct ctl *ctl;
	const struct terminal_spec *spec;
	struct tty tty;
	struct screen screen;
	struct keys keys;
	struct link *link;
	struct signals own_signals;
	int events_fd; /* epoll of all below */
	int window_fd; /* WINCH and CONT */
	bool typing; /* tty.in is in it */
	bool screen_waits; /* tty.out is in it */
	bool interrupted; /* a signal to end was heard */

	char id[ID_UUID_SIZE]; /* "": it has not begun */
	int64_t offset; /* of the next byte of output */
	bool asked; /* init was sent */
	bool ready; /* on this connection */
	bool lost; /* and being looked for */
	struct retry retry;
	int64_t next_try_ms; /* 0: none is due */
	int64_t redraw_ms; /* when the program is told our true size again; 0: it knows */

	bool leaving, exited, over;
	int64_t leave_by_ms;
	int status;
	char words[512]; /* why it ended, for people; "": as it should */
	char last_error[256]; /* that the server told */
};

/* Says something in between; on a line of its own, also in raw mode. */
void session_say(struct session *session, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* It is over, with this exit status and, when fmt is not NULL, these words. */
void
session_finish(struct session *session, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Leaves in good order; with hang_up the program goes, too. */
void session_leave(struct session *session, int status, bool hang_up);

/* session_tty.c */
int session_open_events(struct session *session, struct err *err) MUSTCHECK;
/* What is watched follows what is waiting. */
void session_flow(struct session *session);
/* Our side becomes the program's; NULL err: nothing is said of it. */
void session_take_terminal(struct session *session);
void session_send_size(struct session *session);
/* Others have written on our screen: makes the program draw what it shows anew. */
void session_ask_redraw(struct session *session);
void session_on_events(void *arg);

/* session_link.c */
extern const struct link_events session_link_events;
void session_connect(struct session *session);

#endif
