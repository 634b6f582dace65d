/* problem.h - what went wrong with a request, in words. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_CLIENT_PROBLEM_H
#define ORCHARDCTL_CLIENT_PROBLEM_H

struct answer;
struct err;

/* Of an answer that is no 2xx; fills answer->code. url: of the server. Always -1. */
int problem_of_answer(struct answer *answer, const char *url, struct err *err);

#endif
