/* file_target.h - paths and parameters of file calls, as a target for the agent. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_WORKER_FILE_TARGET_H
#define ORCHARD_WORKER_FILE_TARGET_H

#include "base/cleanup.h"

#include <stdbool.h>

struct request;

/* At most what a request line of the agent takes. */
enum { FILE_TARGET_SIZE = 8000 };

struct file_target {
	char text[FILE_TARGET_SIZE];
	unsigned int len;
	bool parameters; /* there is one already */
	bool too_long;
};

/* path: of the agent, without a query. */
void file_target_init(struct file_target *target, const char *path);
/* Bytes are percent-encoded; value NULL: nothing is added. */
void file_target_add(struct file_target *target, const char *name, const char *value);
void file_target_flag(struct file_target *target, const char *name, bool value);
/*
 * A parameter of the request's query, handed on: as it came or not at all; one that must be given and not be empty; one
 * of two words, where the third tells that. False: it is not so, and the request was answered.
 */
bool file_target_take(struct request *request, struct file_target *target, const char *name) MUSTCHECK;
bool file_target_require(struct request *request, struct file_target *target, const char *name) MUSTCHECK;
bool file_target_choose(struct request *request, struct file_target *target, const char *name,
	const char *const words[3]) MUSTCHECK;
/* False: it does not fit, and the request was answered. */
bool file_target_check(struct request *request, const struct file_target *target) MUSTCHECK;
/* False: the upload is a part of something or hangs on a condition, which nobody here looks at; it was answered. */
bool file_target_whole(struct request *request) MUSTCHECK;
/* 0 to 7777 in octal. */
bool file_mode_is_valid(const char *text);

#endif
