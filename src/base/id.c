/*
 * id.c - random identifiers from the kernel: nothing to seed, nothing that a fork repeats.
 *
 * What names things is taken from a stock that is fetched for many at a time and is empty again in a child;
 * secrets come straight from the kernel and stand nowhere else.
 */
/* SPDX-License-Identifier: MIT */
#include "base/id.h"
#include "base/fork.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char hex_digits[] = "0123456789abcdef";

static void
id_random(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			abort();
		p += n;
		len -= (size_t)n;
	}
}

struct id_stock {
	size_t left;
	uint8_t bytes[1024];
};

static void
id_random_name(uint8_t *buf, size_t len)
{
	static bool asked;
	static struct id_stock *stock;

	if (!asked)
		stock = fork_private(sizeof *stock);
	asked = true;
	if (stock == NULL) {
		id_random(buf, len);
		return;
	}
	if (stock->left < len) {
		id_random(stock->bytes, sizeof stock->bytes);
		stock->left = sizeof stock->bytes;
	}
	stock->left -= len;
	memcpy(buf, stock->bytes + stock->left, len);
}

static bool
id_uuid_has_dash(size_t pos)
{
	return pos == 8 || pos == 13 || pos == 18 || pos == 23;
}

void
id_uuid_text(const uint8_t bytes[16], char ret_uuid[ID_UUID_SIZE])
{
	size_t nibble = 0;

	for (size_t i = 0; i < ID_UUID_SIZE - 1; i++) {
		if (id_uuid_has_dash(i)) {
			ret_uuid[i] = '-';
			continue;
		}
		ret_uuid[i] = hex_digits[nibble % 2 == 0 ? bytes[nibble / 2] >> 4 : bytes[nibble / 2] & 0x0f];
		nibble++;
	}
	ret_uuid[ID_UUID_SIZE - 1] = '\0';
}

void
id_uuid4(char ret_uuid[ID_UUID_SIZE])
{
	uint8_t raw[16];

	id_random_name(raw, sizeof raw);
	raw[6] = (uint8_t)((raw[6] & 0x0f) | 0x40);
	raw[8] = (uint8_t)((raw[8] & 0x3f) | 0x80);
	id_uuid_text(raw, ret_uuid);
}

static int
id_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool
id_uuid_bytes(const char *text, uint8_t ret_bytes[16])
{
	uint8_t raw[16] = { 0 };
	size_t nibble = 0;

	for (size_t i = 0; i < ID_UUID_SIZE - 1; i++) {
		int value;

		if (id_uuid_has_dash(i)) {
			if (text[i] != '-')
				return false;
			continue;
		}
		value = id_hex_value(text[i]);
		if (value < 0)
			return false;
		raw[nibble / 2] = (uint8_t)(raw[nibble / 2] << 4 | value);
		nibble++;
	}
	if (text[ID_UUID_SIZE - 1] != '\0')
		return false;
	memcpy(ret_bytes, raw, sizeof raw);
	return true;
}

bool
id_is_uuid(const char *text)
{
	uint8_t raw[16];

	return id_uuid_bytes(text, raw);
}

void
id_token(char ret_token[ID_TOKEN_SIZE])
{
	uint8_t raw[(ID_TOKEN_SIZE - 1) / 2];

	id_random(raw, sizeof raw);
	for (size_t i = 0; i < sizeof raw; i++) {
		ret_token[2 * i] = hex_digits[raw[i] >> 4];
		ret_token[2 * i + 1] = hex_digits[raw[i] & 0x0f];
	}
	ret_token[ID_TOKEN_SIZE - 1] = '\0';
	explicit_bzero(raw, sizeof raw);
}

static bool
id_is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool
id_is_sandbox_id(const char *text)
{
	size_t len = strnlen(text, 55);

	if (len == 0 || len > 54 || !id_is_alnum(text[0]) || !id_is_alnum(text[len - 1]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!id_is_alnum(text[i]) && text[i] != '-')
			return false;
	return true;
}

void
id_sandbox(char ret_id[24])
{
	static const char alphabet[36] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t len = 3;

	memcpy(ret_id, "sb-", 3);
	while (len < 23) {
		uint8_t raw[32];

		id_random_name(raw, sizeof raw);
		/* 252 = 7 * 36: the bytes above would make the first letters likelier. */
		for (size_t i = 0; i < sizeof raw && len < 23; i++)
			if (raw[i] < 252)
				ret_id[len++] = alphabet[raw[i] % 36];
	}
	ret_id[23] = '\0';
}

bool
id_secret_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
	volatile unsigned char diff = 0;

	if (a_len != b_len)
		return false;
	for (size_t i = 0; i < a_len; i++)
		diff = (unsigned char)(diff | (a[i] ^ b[i]));
	return diff == 0;
}
