/*
 * message.h - what a terminal's client may say, and what is said to it: one JSON object in each text frame.
 *
 * Pure: no socket. What is wrong is told in words for people; nothing is guessed or cut to fit.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_GATEWAY_MESSAGE_H
#define ORCHARD_GATEWAY_MESSAGE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct frame;

enum message_kind { MESSAGE_INIT, MESSAGE_STDIN, MESSAGE_SIGNAL, MESSAGE_RESIZE, MESSAGE_CLOSE };

struct message {
	enum message_kind kind;
	char *text; /* what the agent is told; NULL for stdin */
	uint8_t *data; /* stdin */
	size_t len;
	bool detach; /* init: the session outlives its client */
};

/* ERR_INVALID: err says what is wrong. */
int message_read(const char *text, size_t len, struct message *ret_message, struct err *err) MUSTCHECK;
void message_fini(struct message *message);

/* What an agent says besides output. */
enum agent_word { AGENT_WORD_READY, AGENT_WORD_EXIT, AGENT_WORD_ERROR, AGENT_WORD_TAKEN };

struct agent_said {
	enum agent_word word;
	int64_t window; /* ready: input that may be on its way; 0: this agent does not count */
	int64_t taken; /* taken: bytes of input */
	struct frame *frame; /* the same for the client, or NULL: it is not for him */
};

/* ERR_INVALID: it is no such thing. */
int message_from_agent(const char *text, size_t len, struct agent_said *ret_said, struct err *err) MUSTCHECK;

struct frame *message_output(const void *data, size_t len);
struct frame *message_error(const char *words);
/* A text frame with these bytes. */
struct frame *message_text(const char *text);

#endif
