/* sse.h - Server-Sent Events out of bytes as they come. Pure. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_ATTACH_SSE_H
#define ORCHARDCTL_ATTACH_SSE_H

#include <stddef.h>

struct sse {
	char *line; /* owned: of a line that is not whole yet */
	size_t len, size;
	char event[32];
	char *data; /* owned */
	size_t data_len;
};

/* name: "" when the event has none; data has a NUL behind. Not 0 stops. */
typedef int (*sse_event_fn)(const char *name, const char *data, size_t len, void *arg);

void sse_fini(struct sse *sse);
/* 0, or what the event function answered; -1 also when a line is longer than any that a server sends. */
int sse_take(struct sse *sse, const char *bytes, size_t len, sse_event_fn on_event, void *arg);

#endif
