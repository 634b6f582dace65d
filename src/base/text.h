/* text.h - bytes as text: base64, hex digests, UTF-8 that is always valid. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_TEXT_H
#define ORCHARD_BASE_TEXT_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TEXT_SHA256_HEX_SIZE = 65 };

size_t text_base64_size(size_t len); /* encoded length without NUL */
/* out must hold text_base64_size(len) + 1 bytes. */
void text_base64_encode(const void *data, size_t len, char *out);
/* Strict RFC 4648: no line breaks, padding required, no URL alphabet. *ret_data malloc'ed (never NULL). */
int text_base64_decode(const char *text, size_t text_len, uint8_t **ret_data, size_t *ret_len) MUSTCHECK;

/*
 * Length of the first character, or of the first maximal invalid part (1..3 bytes).
 * len must not be 0.
 */
size_t text_utf8_step(const void *data, size_t len, bool *ret_valid);
bool text_is_utf8(const void *data, size_t len);
/* The length without the beginning of a character at the end, if there is one. */
size_t text_utf8_whole(const void *data, size_t len);
/*
 * Copies data, each maximal invalid part replaced by U+FFFD (WHATWG rule).
 * *ret_text is malloc'ed and has a NUL behind; it may contain NULs.
 */
int text_utf8_repair(const void *data, size_t len, char **ret_text, size_t *ret_len) MUSTCHECK;
/* In place, without allocation: each maximal invalid part, such as a character cut by a limit, becomes '?'. */
void text_utf8_mend(char *text);

void text_sha256_hex(const void *data, size_t len, char ret_hex[TEXT_SHA256_HEX_SIZE]);

/* HMAC-SHA256 (RFC 2104) in hex. */
void text_hmac_sha256_hex(
	const void *key, size_t key_len, const void *data, size_t len, char ret_hex[TEXT_SHA256_HEX_SIZE]);

/* Fits dst like strlcpy; false (dst untouched) when src and its NUL do not fit. */
bool text_copy(char *dst, size_t size, const char *src) MUSTCHECK;

#endif
