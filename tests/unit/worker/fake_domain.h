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
	/* what came in */
	uint32_t calls; /* of domain functions that do something */
	char tenant[32];
	char id[ID_TOKEN_SIZE];
	char text[512]; /* image, labels, command, label filter */
	int64_t ttl_ms, idle_ms, timeout_ms;
	uint32_t limit;
	int status;
	/* what is pending, and what was ended early */
	bool sandbox_waits, job_waits, submits, gets;
	uint32_t cancelled;
};

extern struct fake fake;

void fake_reset(void);
void fake_fail(enum err_code code, const char *msg);
void fake_end_sandbox_wait(const struct err *why);
void fake_end_job_wait(const struct err *why);
void fake_end_submit(const struct err *why);
void fake_end_get(void);

#endif
