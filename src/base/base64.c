/*
 * base64.c - the base64 half of text.h. A text decodes only if encoding the
 * result gives back that very text.
 */
/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <string.h>

enum { BAD = 64 };

static const char alphabet[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t
text_base64_size(size_t len)
{
	return (len / 3 + (len % 3 != 0)) * 4;
}

void
text_base64_encode(const void *data, size_t len, char *out)
{
	const uint8_t *p = data;

	for (; len >= 3; len -= 3, p += 3) {
		*out++ = alphabet[p[0] >> 2];
		*out++ = alphabet[(p[0] & 0x03) << 4 | p[1] >> 4];
		*out++ = alphabet[(p[1] & 0x0f) << 2 | p[2] >> 6];
		*out++ = alphabet[p[2] & 0x3f];
	}
	if (len > 0) {
		uint8_t second = len == 2 ? p[1] : 0;

		*out++ = alphabet[p[0] >> 2];
		*out++ = alphabet[(p[0] & 0x03) << 4 | second >> 4];
		*out++ = '=';
		if (len == 2)
			out[-1] = alphabet[(second & 0x0f) << 2];
		*out++ = '=';
	}
	*out = '\0';
}

static unsigned
base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (unsigned)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (unsigned)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0') + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : BAD;
}

/* Four characters to `bytes` (1..3) bytes; false if one is wrong or bits that carry nothing are set. */
static bool
base64_decode_group(const char *text, size_t bytes, uint8_t *out)
{
	unsigned group = 0;

	for (size_t i = 0; i <= bytes; i++) {
		unsigned value = base64_value(text[i]);

		if (value == BAD)
			return false;
		group |= value << (18 - 6 * i);
	}
	for (size_t i = 0; i < bytes; i++)
		out[i] = (uint8_t)(group >> (16 - 8 * i));
	return (group & ((1u << (24 - 8 * bytes)) - 1)) == 0;
}

int
text_base64_decode(const char *text, size_t text_len, uint8_t **ret_data, size_t *ret_len)
{
	size_t pad = 0, len, done = 0;
	AUTO_FREE uint8_t *data = NULL;

	if (text_len % 4 != 0)
		return -1;
	if (text_len > 0 && text[text_len - 1] == '=')
		pad = text[text_len - 2] == '=' ? 2 : 1;
	len = text_len / 4 * 3 - pad;
	data = malloc(len + 1);
	if (data == NULL)
		return -1;
	for (size_t i = 0; i < text_len; i += 4) {
		size_t bytes = len - done < 3 ? len - done : 3;

		if (!base64_decode_group(text + i, bytes, data + done))
			return -1;
		done += bytes;
	}
	data[len] = 0;
	*ret_data = STEAL_PTR(data);
	*ret_len = len;
	return 0;
}
