/*
 * stage.h - a whole server with actors for roles, for the tests of the master.
 *
 * The master runs in a process of its own. Each actor plays the part that the file
 * DIR/ROLE names and reports what happens to it on one pipe, a line at a time; the
 * tests wait for these lines, never for time to pass.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_MASTER_STAGE_H
#define ORCHARD_TESTS_MASTER_STAGE_H

#include "master/master.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STAGE_LINE = 160 };

struct stage {
	char dir[64];
	char conf[80];
	char log[80];
	uint16_t port;
	struct master_timing timing;
	int events_read;
	int events_write;
	size_t pending_len;
	char pending[4096];
	pid_t master;
	const char *notify_socket; /* NULL: no service manager */
	bool gateway; /* there is one; an actor's HUP is a line, and it goes on */
};

/*
 * Parts: "good" (ready, leaves when told), "fail" (role_failed, status 1), "hopeless"
 * (role_failed, status 2), "crash" (KILLs itself before READY), "crash once"
 * (the same, but who takes its place is good), "hang" (never READY),
 * "brief" (READY, then status 1 at once), "stubborn" (READY, hears nothing).
 */
int stage_setup(void **state); /* fresh directory and port; every role "good", one worker */
int stage_teardown(void **state); /* kills what is left */

void stage_part(struct stage *stage, const char *role, const char *part);
/* Writes the configuration: what every test needs, and these lines. */
void stage_config(struct stage *stage, const char *lines);
void stage_start(struct stage *stage);
/* Another server, with the same port and directories whose names end in suffix; its exit status and log. */
int stage_run_second(struct stage *stage, const char *suffix, char *ret_log, size_t size);

/*
 * The next line of which `words` is a part; lines before it are dropped. Fails the
 * test after 15 s. An actor's line: "ROLE PID EVENT ...". Returns its PID.
 */
pid_t stage_expect(struct stage *stage, const char *words, char ret_line[STAGE_LINE]);
/* True if the line comes within ms: for things that must not happen. */
bool stage_hears(struct stage *stage, const char *words, int ms);
void stage_signal(struct stage *stage, int sig);
/* Waits for the master's end; its exit status, or 1000 + signal. */
int stage_wait(struct stage *stage);
/* The log so far contains the words. */
bool stage_logged(struct stage *stage, const char *words);
/* Waits until it does (15 s). */
void stage_expect_log(struct stage *stage, const char *words);
/* 0, or the errno of a TCP connect to the server's port. */
int stage_connect(struct stage *stage);

#endif
