/* frame.h - the messages of a terminal's WebSocket: one JSON object in each text frame. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_TERMINAL_FRAME_H
#define ORCHARDCTL_TERMINAL_FRAME_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct terminal_spec;

/* All malloc'ed. */
char *frame_init(const struct terminal_spec *spec, unsigned rows, unsigned cols);
char *frame_stdin(const void *data, size_t len);
char *frame_resize(unsigned rows, unsigned cols);
char *frame_close(void);

enum heard_kind { HEARD_READY, HEARD_OUTPUT, HEARD_EXIT, HEARD_ERROR, HEARD_OTHER };

struct heard {
	enum heard_kind kind;
	uint8_t *data; /* of output; owned */
	size_t len;
	char session[ID_UUID_SIZE]; /* of ready; "" when it names none */
	int64_t offset; /* of ready: where the output that follows begins */
	int code; /* of exit; -N: ended by signal N */
	char words[256]; /* of an error */
};

/* A message of a kind that this program does not know is HEARD_OTHER. ERR_INVALID: it is none at all. */
int frame_read(const char *text, size_t len, struct heard *ret_heard, struct err *err) MUSTCHECK;

#endif
