/* alloc.c - malloc and its kin, checked once. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"

#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
alloc_checked(void *memory)
{
	if (memory == NULL) {
		log_error("out of memory");
		abort();
	}
	return memory;
}

void *
alloc_bytes(size_t size)
{
	return alloc_checked(malloc(size == 0 ? 1 : size));
}

void *
alloc_zero(size_t count, size_t size)
{
	return alloc_checked(calloc(count == 0 ? 1 : count, size));
}

void *
alloc_resize(void *memory, size_t size)
{
	return alloc_checked(realloc(memory, size == 0 ? 1 : size));
}

char *
alloc_string(const char *text)
{
	return alloc_checked(strdup(text));
}

char *
alloc_format(const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	return alloc_checked(len < 0 ? NULL : text);
}
