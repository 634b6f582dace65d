/* args.c - puts the words of a command together; what does not fit is the caller's mistake and ends the process. */
/* SPDX-License-Identifier: MIT */
#include "redis/args.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
redis_args_init(struct redis_args *args)
{
	args->count = 0;
	args->scratch_used = 0;
}

void
redis_args_bytes(struct redis_args *args, const void *data, size_t size)
{
	if (args->count == REDIS_ARGS_MAX)
		abort();
	args->list[args->count++] = (struct redis_arg){ .data = data, .size = size };
}

void
redis_args_text(struct redis_args *args, const char *text)
{
	redis_args_bytes(args, text, strlen(text));
}

void
redis_args_format(struct redis_args *args, const char *format, ...)
{
	char *word = args->scratch + args->scratch_used;
	size_t room = sizeof args->scratch - args->scratch_used;
	va_list ap;
	int len;

	va_start(ap, format);
	len = vsnprintf(word, room, format, ap);
	va_end(ap);
	if (len < 0 || (size_t)len >= room)
		abort();
	args->scratch_used += (size_t)len + 1;
	redis_args_bytes(args, word, (size_t)len);
}

void
redis_args_number(struct redis_args *args, int64_t number)
{
	redis_args_format(args, "%lld", (long long)number);
}
