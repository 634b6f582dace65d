/*
 * fake_domain.h - the domain as the handlers see it, with its outcomes set by the test.
 *
 * Every call fails with `fail` while that has a code. Calls that may answer later do so
 * when the test says (fake_end_...), if `defer` is set; else before they return,
 * where their contract allows that.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_FAKE_DOMAIN_H
#define ORCHARD_TESTS_FAKE_DOMAIN_H

#include "base/err.h"
#include "base/id.h"
#include "ipc/sandbox_table.h"

#include <stdbool.h>
#include <stdint.h>

#define FAKE_JOB_ID "0b0e7a52-6f3c-4c5b-9d0a-0123456789ab"

struct json_object;

struct fake {
	struct err fail;
	bool defer;
	bool defer_get; /* job_get, job_list, service checks */
	struct sandbox_record record; /* what sandboxes look like */
	const char *job_status;
	const char *problems; /* of readiness; NULL: ready */
	const char *cursor; /* of the next page */
	uint32_t busy; /* what this process drives */
	bool looks; /* ids are first asked for at other servers */
	/* what came in */
	uint32_t calls; /* of domain functions that do something */
	char tenant[32];
	char id[ID_TOKEN_SIZE];
	char key[256];
	char text[512]; /* image, labels, command, label filter */
	int64_t ttl_ms, idle_ms, timeout_ms;
	uint32_t limit;
	int status;
	/* what is pending, and what was ended early */
	bool look_waits, sandbox_waits, ready_waits, job_waits, submits, gets, feeds, outputs, writes;
	/* of feeds, outputs and writes */
	int64_t offset[2], count; /* an output's is the first */
	int stream;
	uint32_t more; /* pieces asked for after the first */
	size_t write_len;
	bool eof;
	uint32_t cancelled;
	uint32_t detached;
	uint32_t left; /* clients that left their commands */
};

extern struct fake fake;

void fake_reset(void);
void fake_fail(enum err_code code, const char *msg);
void fake_end_look(const struct err *why);
void fake_end_sandbox_wait(const struct err *why);
void fake_end_ready(const struct err *why);
void fake_end_job_wait(const struct err *why);
void fake_end_submit(const struct err *why);
void fake_end_get(void);
/* What a feed tells; NULL, NULL: the job has ended. */
void fake_feed_status(const char *status, uint32_t queue_position);
void fake_feed_piece(int stream, int64_t offset, const char *text);
void fake_feed_quiet(void);
void fake_end_feed(const struct err *why);
/* What an output gives; false: nobody wants its bytes. */
bool fake_output_open(int64_t length, int64_t bytes);
void fake_output_piece(const void *data, size_t len);
void fake_end_output(const struct err *why);
void fake_end_write(const struct err *why);

#endif
