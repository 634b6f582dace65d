/*
 * follow.h - the output of a job as it comes, each byte once, until the job ends.
 *
 * A stream that breaks off is opened anew at the byte where it was. While nobody reads what is written, the stream waits
 * in the server; a signal ends that wait.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_ATTACH_FOLLOW_H
#define ORCHARDCTL_ATTACH_FOLLOW_H

#include "orchardctl/attach/sse.h"
#include "orchardctl/client/client.h"

enum { FOLLOW_OUT, FOLLOW_ERR, FOLLOW_STREAMS };

struct follow {
	struct client *client;
	struct signals *signals; /* NULL: signals end the process */
	const char *job_id; /* borrowed */
	int fds[FOLLOW_STREAMS]; /* where the output goes; -1: nowhere */
	int64_t at[FOLLOW_STREAMS]; /* bytes of each that are through */
	int64_t give_up_ms; /* not 0: then it waits for no reader any longer */
	bool tell_queue; /* a remark when it has to wait for others */
	/* What becomes of it. */
	struct json_object *job; /* owned: the ended job, without its output */
	bool incomplete; /* bytes of it are nowhere any more; this was said */
	bool failed; /* it can't be followed; err says why */
	int write_error; /* errno; EPIPE: nobody wants to read any more */
	struct err err;
	/* Private. */
	struct sse sse;
	struct transfer *transfer;
	struct request request;
	struct answer answer;
	char *path;
	struct retry retry;
	int64_t next_ms; /* when the stream is opened anew; 0: now */
};

/* Fill in the first part before; nothing is sent yet. */
void follow_start(struct follow *follow);
void follow_fini(struct follow *follow);
/* Does what is due; call it before each client_step(). Returns for how long nothing will be, in milliseconds. */
int follow_go_on(struct follow *follow);
/* It has come to its end, with or without a job. */
bool follow_is_over(const struct follow *follow);

#endif
