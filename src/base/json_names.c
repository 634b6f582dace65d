/* json_names.c - what is no UTF-8 in a text that was written, as escapes. */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum { NAMES_ESCAPE = 6 }; /* a backslash, udcNN */

/* Bytes of text that are no part of a character. */
static size_t
names_count(const char *text, size_t len)
{
	size_t count = 0;
	bool valid;

	for (size_t at = 0, n; at < len; at += n) {
		n = text_utf8_step(text + at, len - at, &valid);
		count += valid ? 0 : n;
	}
	return count;
}

/* Such bytes stand in strings only: all the rest of a JSON text is ASCII. */
char *
json_text_names(struct json_object *value, size_t *ret_len)
{
	size_t len;
	const char *text = json_text(value, &len);
	size_t size = len + names_count(text, len) * (NAMES_ESCAPE - 1);
	char *out = must_alloc(malloc(size + 1));
	char *to = out;
	bool valid;

	for (size_t at = 0, n; at < len; at += n) {
		n = text_utf8_step(text + at, len - at, &valid);
		if (valid)
			to = (char *)memcpy(to, text + at, n) + n;
		for (size_t i = 0; !valid && i < n; i++)
			to += snprintf(to, NAMES_ESCAPE + 1, "\\udc%02x", (unsigned char)text[at + i]);
	}
	*to = '\0';
	*ret_len = size;
	return out;
}
