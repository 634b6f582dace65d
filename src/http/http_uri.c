/* http_uri.c - percent-encoding and query parameters; what is malformed is never guessed. */
/* SPDX-License-Identifier: MIT */
#include "http/http_parser.h"

#include <stdlib.h>
#include <string.h>

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static int
uri_decode(const char *text, size_t len, bool plus_is_space, char **ret_text)
{
	AUTO_FREE char *out = malloc(len + 1);
	size_t n = 0;

	if (out == NULL)
		abort();
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (c == '%') {
			int high = i + 2 < len ? hex_digit(text[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(text[i + 2]) : -1;

			if (low < 0)
				return -1;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		if (c == '\0')
			return -1;
		out[n++] = c;
	}
	out[n] = '\0';
	*ret_text = STEAL_PTR(out);
	return 0;
}

int
http_percent_decode(const char *text, size_t len, char **ret_text)
{
	return uri_decode(text, len, false, ret_text);
}

int
http_query_get(const char *query, const char *name, char **ret_value)
{
	AUTO_FREE char *found = NULL;

	while (*query != '\0') {
		size_t len = strcspn(query, "&");
		size_t key_len = 0;
		AUTO_FREE char *key = NULL;

		while (key_len < len && query[key_len] != '=')
			key_len++;
		if (uri_decode(query, key_len, true, &key) < 0)
			return -1;
		if (strcmp(key, name) == 0) {
			const char *value = query + key_len + (key_len < len);

			if (found != NULL || uri_decode(value, (size_t)(query + len - value), true, &found) < 0)
				return -1;
		}
		query += len + (query[len] == '&');
	}
	if (found == NULL)
		return 0;
	*ret_value = STEAL_PTR(found);
	return 1;
}
