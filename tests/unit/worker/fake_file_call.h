/* fake_file_call.h - an agent that the test plays, behind domain/file_call.h. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_FAKE_FILE_CALL_H
#define ORCHARD_TESTS_FAKE_FILE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct fake_file {
	bool open; /* a call is under way */
	char method[16], target[9000], range[64];
	int64_t length;
	size_t queued; /* what a send says is queued */
	size_t sent; /* bytes of the body */
	char body[256];
	bool sent_end;
	unsigned resumed, cancelled;
};

extern struct fake_file fake_file;

void fake_file_want(void);
void fake_file_drained(void);
/* The head of the agent's answer: status line and headers, each line with its CRLF, and an empty one. */
void fake_file_head(const char *text);
/* How much of it was left. */
size_t fake_file_data(const void *data, size_t len);
void fake_file_end(const struct err *why);

#endif
