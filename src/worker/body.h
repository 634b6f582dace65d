/*
 * body.h - takes a request's body into memory, within what all bodies of this worker may hold there.
 *
 * The first 16 KiB of each are free: while big bodies have taken everything, small requests still get in. One body
 * alone is never refused for its size here, so body_memory_bytes below max_body_bytes slows down, and shuts out nobody.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_BODY_H
#define ORCHARD_WORKER_BODY_H

#include <stddef.h>
#include <stdint.h>

struct request;

/* What has come of it. */
struct body {
	char *bytes; /* owned; not NUL-terminated */
	size_t len, size;
	size_t max;
	int64_t held; /* of api->body_bytes, until the request ends */
	void (*done)(struct request *request);
};

/*
 * Calls done once request->input has all of it; or the request is refused: 413 over max, 503 when other bodies have
 * taken the memory.
 */
void body_take(struct request *request, size_t max, void (*done)(struct request *request));
/* Takes a JSON object; then the route's handler is called with request->body set; or the request is refused. */
void body_collect(struct request *request);
/* When the request ends, behind whatever was made of the body. */
void body_release(struct request *request);

#endif
