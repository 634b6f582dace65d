/* body.h - takes a request's JSON body; the handler runs once it is there and an object. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_BODY_H
#define ORCHARD_WORKER_BODY_H

struct request;

/* Then the route's handler is called with request->body set; or the request is refused. */
void body_collect(struct request *request);

#endif
