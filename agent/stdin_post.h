/* stdin_post.h - POST /jobs/{id}/stdin: bytes for a command whose stdin is open. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_STDIN_POST_H
#define ORCHARD_AGENT_STDIN_POST_H

struct http_exchange;
struct job;

/*
 * Reads the query, waits for a turn, reads the body, answers. The body stays unread with the client until its
 * turn has come, so waiting writers cost no memory; one that leaves has written nothing.
 */
void stdin_post_attach(struct http_exchange *exchange, struct job *job);

#endif
