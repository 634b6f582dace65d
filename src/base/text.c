/*
 * text.c - UTF-8, digests and bounded copies.
 *
 * One function, text_utf8_step(), knows UTF-8; all else asks it. An invalid part
 * is as long as it could still have become a character (the WHATWG rule), so
 * every decoder that follows the rule shows the same number of U+FFFD.
 */
/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <sha2.h>
#include <string.h>

_Static_assert(TEXT_SHA256_HEX_SIZE == SHA256_DIGEST_STRING_LENGTH, "hex digest of SHA-256");

static const char replacement[3] = "\xef\xbf\xbd";

/* How many bytes follow the lead byte, and what the first of them may be. */
static size_t
text_utf8_lead(uint8_t lead, uint8_t *ret_low, uint8_t *ret_high)
{
	*ret_low = 0x80;
	*ret_high = 0xbf;
	if (lead >= 0xc2 && lead <= 0xdf)
		return 1;
	if (lead >= 0xe0 && lead <= 0xef) {
		if (lead == 0xe0)
			*ret_low = 0xa0; /* shorter forms exist */
		if (lead == 0xed)
			*ret_high = 0x9f; /* surrogates */
		return 2;
	}
	if (lead >= 0xf0 && lead <= 0xf4) {
		if (lead == 0xf0)
			*ret_low = 0x90;
		if (lead == 0xf4)
			*ret_high = 0x8f; /* beyond U+10FFFF */
		return 3;
	}
	return 0;
}

size_t
text_utf8_step(const void *data, size_t len, bool *ret_valid)
{
	const uint8_t *p = data;
	uint8_t low, high;
	size_t more;

	*ret_valid = true;
	if (p[0] < 0x80)
		return 1;
	more = text_utf8_lead(p[0], &low, &high);
	*ret_valid = false;
	for (size_t i = 1; i <= more; i++) {
		if (i >= len || p[i] < low || p[i] > high)
			return i;
		low = 0x80;
		high = 0xbf;
	}
	*ret_valid = more > 0;
	return 1 + more;
}

bool
text_is_utf8(const void *data, size_t len)
{
	const uint8_t *p = data;
	bool valid = true;

	for (size_t i = 0; i < len && valid;)
		i += text_utf8_step(p + i, len - i, &valid);
	return valid;
}

size_t
text_utf8_whole(const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t start = len;

	while (start > 0 && len - start < 4) {
		bool valid;

		if ((p[--start] & 0xc0) == 0x80)
			continue;
		/* The bytes that begin a character of several. */
		if (p[start] >= 0xc2 && p[start] <= 0xf4 &&
			text_utf8_step(p + start, len - start, &valid) == len - start && !valid)
			return start;
		break;
	}
	return len;
}

static size_t
text_utf8_repaired_len(const uint8_t *data, size_t len)
{
	size_t total = 0;

	for (size_t i = 0; i < len;) {
		bool valid;
		size_t n = text_utf8_step(data + i, len - i, &valid);

		total += valid ? n : sizeof replacement;
		i += n;
	}
	return total;
}

int
text_utf8_repair(const void *data, size_t len, char **ret_text, size_t *ret_len)
{
	const uint8_t *p = data;
	size_t out = 0, total = text_utf8_repaired_len(p, len);
	char *text = malloc(total + 1);

	if (text == NULL)
		return -1;
	for (size_t i = 0; i < len;) {
		bool valid;
		size_t n = text_utf8_step(p + i, len - i, &valid);
		size_t out_n = valid ? n : sizeof replacement;

		memcpy(text + out, valid ? (const void *)(p + i) : replacement, out_n);
		out += out_n;
		i += n;
	}
	text[total] = '\0';
	*ret_text = text;
	*ret_len = total;
	return 0;
}

void
text_utf8_mend(char *text)
{
	size_t len = strlen(text), out = 0;

	for (size_t i = 0; i < len;) {
		bool valid;
		size_t n = text_utf8_step(text + i, len - i, &valid);

		if (valid)
			memmove(text + out, text + i, n);
		else
			text[out] = '?';
		out += valid ? n : 1;
		i += n;
	}
	text[out] = '\0';
}

void
text_sha256_hex(const void *data, size_t len, char ret_hex[TEXT_SHA256_HEX_SIZE])
{
	SHA256Data(len > 0 ? data : "", len, ret_hex);
}

void
text_hmac_sha256_hex(
	const void *key, size_t key_len, const void *data, size_t len, char ret_hex[TEXT_SHA256_HEX_SIZE])
{
	uint8_t block[SHA256_BLOCK_LENGTH] = { 0 }, pad[SHA256_BLOCK_LENGTH], digest[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	if (key_len > sizeof block) {
		SHA256Update(&ctx, key, key_len);
		SHA256Final(block, &ctx);
	} else {
		memcpy(block, key, key_len);
	}
	for (int outer = 0; outer <= 1; outer++) {
		for (size_t i = 0; i < sizeof pad; i++)
			pad[i] = block[i] ^ (outer ? 0x5c : 0x36);
		SHA256Init(&ctx);
		SHA256Update(&ctx, pad, sizeof pad);
		SHA256Update(&ctx, outer ? digest : data, outer ? sizeof digest : len);
		if (!outer)
			SHA256Final(digest, &ctx);
	}
	SHA256End(&ctx, ret_hex);
	explicit_bzero(block, sizeof block);
	explicit_bzero(pad, sizeof pad);
	explicit_bzero(&ctx, sizeof ctx);
}

bool
text_copy(char *dst, size_t size, const char *src)
{
	size_t len = strlen(src);

	if (len >= size)
		return false;
	memcpy(dst, src, len + 1);
	return true;
}
