/* answer_impl.h - for the client: answers from hiredis' replies, and what errors mean for the connection. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_ANSWER_IMPL_H
#define ORCHARD_REDIS_ANSWER_IMPL_H

#include "redis/answer.h"

struct redisReply;

/* Borrows the reply's texts. redis_answer_clear() frees the arrays. */
void redis_answer_fill(struct redis_answer *answer, const struct redisReply *reply);
void redis_answer_clear(struct redis_answer *answer);

/* An error that this server gives for now, where another connection may reach one that serves. */
bool redis_answer_is_away(const struct redis_answer *answer);
/* An error with that word first. */
bool redis_answer_is_error(const struct redis_answer *answer, const char *word);

#endif
