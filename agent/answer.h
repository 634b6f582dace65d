/* answer.h - the few forms that answers have. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_ANSWER_H
#define ORCHARD_AGENT_ANSWER_H

struct evbuffer;
struct http_exchange;
struct job;
struct json_object;

/* Takes body. */
void answer_json(struct http_exchange *exchange, int status, struct json_object *body);
/* 200 with a JSON text; takes body. */
void answer_body(struct http_exchange *exchange, struct evbuffer *body);
void answer_job(struct http_exchange *exchange, const struct job *job);
/* {"code","detail"} */
void answer_error(struct http_exchange *exchange, int status, const char *code, const char *detail);

#endif
