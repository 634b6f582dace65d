/* args.h - the words of one command, put together on the stack; bytes are borrowed until it has been sent. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_REDIS_ARGS_H
#define ORCHARD_REDIS_ARGS_H

#include <stddef.h>
#include <stdint.h>

struct redis_arg {
	const void *data;
	size_t size;
};

enum { REDIS_ARGS_MAX = 96, REDIS_ARGS_SCRATCH = 4096 };

/* More words, or longer formatted ones, than fit end the process: callers know their number beforehand. */
struct redis_args {
	size_t count;
	size_t scratch_used;
	struct redis_arg list[REDIS_ARGS_MAX];
	char scratch[REDIS_ARGS_SCRATCH];
};

/* Leaves list and scratch as they are: nothing reads what was not put in. */
void redis_args_init(struct redis_args *args);
void redis_args_bytes(struct redis_args *args, const void *data, size_t size);
void redis_args_text(struct redis_args *args, const char *text);
/* These two copy. */
void redis_args_number(struct redis_args *args, int64_t number);
void redis_args_format(struct redis_args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
