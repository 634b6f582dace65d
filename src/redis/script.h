/* script.h - for the client: which scripts this connection knows, and how to send one again. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_SCRIPT_H
#define ORCHARD_REDIS_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

struct redis;
struct redis_answer;
struct redis_command;
struct redis_script;

enum { REDIS_SCRIPT_SHA = 40 };

struct redis_script_note {
	const struct redis_script *script;
	char sha[REDIS_SCRIPT_SHA + 1];
	uint64_t connection; /* that it was sent whole on */
	uint32_t errors; /* its last answers were, in a row */
};

struct redis_script_notes {
	size_t count;
	struct redis_script_note *list;
};

/* What to send if Redis does not know the digest. */
struct redis_retry {
	struct redis_script_note note; /* a copy: the list may move */
	char *tail; /* all words behind the digest, as sent; NULL: this command is no such one */
	size_t tail_size;
	size_t words;
};

/* Sends it whole; the command, with its deadline, goes to the end of the queue. */
void redis_script_again(struct redis *redis, struct redis_command *command);
/* Keeps in mind whether that script is refused. */
void redis_script_judge(struct redis *redis, const struct redis_script *script, const struct redis_answer *answer);
void redis_script_notes_free(struct redis_script_notes *notes);

#endif
