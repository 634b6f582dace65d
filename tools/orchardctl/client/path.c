/* path.c - only unreserved characters stand for themselves, so no value ends its place in the path. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/client/path.h"
#include "base/alloc.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <stdarg.h>

static char *
encode_to(char *out, const char *value)
{
	static const char hex[] = "0123456789ABCDEF";

	for (; *value != '\0'; value++) {
		unsigned char c = (unsigned char)*value;

		if (c < 0x80 && (isalnum(c) || strchr("-._~", c) != NULL)) {
			*out++ = (char)c;
		} else {
			*out++ = '%';
			*out++ = hex[c >> 4];
			*out++ = hex[c & 15];
		}
	}
	return out;
}

char *
path_format(const char *format, ...)
{
	size_t size = strlen(format) + 1;
	char *path, *out;
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	for (const char *p = format; (p = strstr(p, "%s")) != NULL; p += 2)
		size += 3 * strlen(va_arg(args, const char *));
	va_end(args);
	path = out = alloc_bytes(size);
	while (*format != '\0') {
		if (strncmp(format, "%s", 2) == 0) {
			out = encode_to(out, va_arg(again, const char *));
			format += 2;
		} else {
			*out++ = *format++;
		}
	}
	*out = '\0';
	va_end(again);
	return path;
}

void
path_add(char **path, const char *name, const char *value)
{
	AUTO_FREE char *encoded = NULL;
	char *longer;

	if (value == NULL)
		return;
	encoded = path_format("%s=%s", name, value);
	longer = alloc_format("%s%c%s", *path, strchr(*path, '?') != NULL ? '&' : '?', encoded);
	free(*path);
	*path = longer;
}
