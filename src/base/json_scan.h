/*
 * json_scan.h - the leaves of a JSON text: strings, numbers, words. Private to json.c and json_write.c.
 *
 * To the letter of RFC 8259; see json.h for what is refused. Everything here returns
 * false when the text is wrong, and err says where and why.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_JSON_SCAN_H
#define ORCHARD_BASE_JSON_SCAN_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct json_object;

struct json_scan {
	const char *text;
	size_t len, pos;
	struct err *err;
	bool names; /* of json_parse_names() */
};

/* A decoded string: in the text as it stands there, or owned (freed by the caller). No NUL behind. */
struct json_piece {
	const char *text;
	size_t len;
	char *owned;
};

/* How many leading bytes stand for themselves inside a string: ASCII but controls, '"' and '\\'. */
size_t json_scan_plain(const char *text, size_t len);
/* Over white space; the character that follows, or -1 at the end. */
int json_scan_next(struct json_scan *scan);
/* pos stands at the opening quote. */
bool json_scan_string(struct json_scan *scan, bool is_key, struct json_piece *ret_piece) MUSTCHECK;
bool json_scan_number(struct json_scan *scan, struct json_object **ret_value) MUSTCHECK;
/* true, false, null (which is NULL). */
bool json_scan_word(struct json_scan *scan, struct json_object **ret_value) MUSTCHECK;

/* Both always false. */
bool json_scan_fail(struct json_scan *scan, size_t pos, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
bool json_scan_expected(struct json_scan *scan, const char *what);

#endif
