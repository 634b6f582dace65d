/*
 * quantity.c - amounts of cpu and memory as Kubernetes writes them, in whole numbers.
 *
 * No floating point: what does not fit is refused, never wrapped, and a fraction
 * of the smallest unit counts as a whole one.
 */
/* SPDX-License-Identifier: MIT */
#include "base/quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTITY_MAX_DIGITS = 19, QUANTITY_MAX_EXPONENT = 400 };

struct quantity {
	uint64_t digits;
	int exp10;
	int exp2;
	bool rest; /* digits behind those kept were not all zero */
};

static const struct {
	const char *name;
	int exp10, exp2;
} quantity_suffixes[] = {
	{ "", 0, 0 },
	{ "n", -9, 0 },
	{ "u", -6, 0 },
	{ "m", -3, 0 },
	{ "k", 3, 0 },
	{ "M", 6, 0 },
	{ "G", 9, 0 },
	{ "T", 12, 0 },
	{ "P", 15, 0 },
	{ "E", 18, 0 },
	{ "Ki", 0, 10 },
	{ "Mi", 0, 20 },
	{ "Gi", 0, 30 },
	{ "Ti", 0, 40 },
	{ "Pi", 0, 50 },
	{ "Ei", 0, 60 },
};

/* [+]digits[.digits]: where it ends, or NULL. */
static const char *
quantity_read_number(const char *p, struct quantity *ret)
{
	bool any = false, fraction = false;
	int kept = 0;

	if (*p == '+')
		p++;
	for (; isdigit((unsigned char)*p) || (*p == '.' && !fraction); p++) {
		if (*p == '.') {
			fraction = true;
			continue;
		}
		any = true;
		if (kept < QUANTITY_MAX_DIGITS) {
			ret->digits = ret->digits * 10 + (uint64_t)(*p - '0');
			kept += ret->digits != 0;
			ret->exp10 -= fraction;
		} else {
			ret->rest |= *p != '0';
			ret->exp10 += !fraction;
		}
		if (abs(ret->exp10) > QUANTITY_MAX_EXPONENT)
			return NULL;
	}
	return any ? p : NULL;
}

/* "e3", "E-2": a decimal exponent. */
static int
quantity_read_exponent(const char *p, struct quantity *ret)
{
	char *end;
	long exponent;

	p++;
	if (!isdigit((unsigned char)*p) && !((*p == '-' || *p == '+') && isdigit((unsigned char)p[1])))
		return -1;
	exponent = strtol(p, &end, 10);
	if (*end != '\0' || exponent > QUANTITY_MAX_EXPONENT || exponent < -QUANTITY_MAX_EXPONENT)
		return -1;
	ret->exp10 += (int)exponent;
	return 0;
}

static int
quantity_read(const char *text, struct quantity *ret)
{
	const char *p;

	*ret = (struct quantity){ 0 };
	p = quantity_read_number(text, ret);
	if (p == NULL)
		return -1;
	if ((*p == 'e' || *p == 'E') && p[1] != '\0' && p[1] != 'i')
		return quantity_read_exponent(p, ret);
	for (size_t i = 0; i < sizeof quantity_suffixes / sizeof *quantity_suffixes; i++) {
		if (strcmp(p, quantity_suffixes[i].name) == 0) {
			ret->exp10 += quantity_suffixes[i].exp10;
			ret->exp2 = quantity_suffixes[i].exp2;
			return 0;
		}
	}
	return -1;
}

/* In units of 10^-scale, rounded up; -1 when it is over max. */
static int
quantity_scaled(const struct quantity *q, int scale, int64_t max, int64_t *ret_value)
{
	unsigned __int128 value = (unsigned __int128)q->digits << q->exp2;
	int exponent = q->exp10 + scale;
	bool rest = q->rest;

	for (; exponent > 0 && value != 0; exponent--) {
		if (value > (unsigned __int128)max)
			return -1;
		value *= 10;
	}
	for (; exponent < 0 && value != 0; exponent++) {
		rest |= value % 10 != 0;
		value /= 10;
	}
	value += rest;
	if (value > (unsigned __int128)max)
		return -1;
	*ret_value = (int64_t)value;
	return 0;
}

/* The same; -1 for 0, too. */
static int
quantity_value(const struct quantity *q, int scale, int64_t max, int64_t *ret_value)
{
	int64_t value;

	if (quantity_scaled(q, scale, max, &value) != 0 || value == 0)
		return -1;
	*ret_value = value;
	return 0;
}

int64_t
quantity_amount(const char *text, int scale)
{
	struct quantity q;
	int64_t value;

	if (quantity_read(text, &q) != 0)
		return 0;
	return quantity_scaled(&q, scale, INT64_MAX, &value) == 0 ? value : INT64_MAX;
}

int
quantity_parse_cpu(const char *text, int32_t *ret_milli)
{
	struct quantity q;
	int64_t milli;

	if (quantity_read(text, &q) != 0 || quantity_value(&q, 3, INT32_MAX, &milli) != 0)
		return -1;
	*ret_milli = (int32_t)milli;
	return 0;
}

int
quantity_parse_memory(const char *text, int64_t *ret_bytes)
{
	struct quantity q;

	if (quantity_read(text, &q) != 0)
		return -1;
	return quantity_value(&q, 0, INT64_MAX, ret_bytes);
}

void
quantity_cpu_text(int32_t milli, char ret_text[QUANTITY_TEXT_SIZE])
{
	if (milli % 1000 == 0)
		snprintf(ret_text, QUANTITY_TEXT_SIZE, "%" PRId32, milli / 1000);
	else
		snprintf(ret_text, QUANTITY_TEXT_SIZE, "%" PRId32 "m", milli);
}

void
quantity_memory_text(int64_t bytes, char ret_text[QUANTITY_TEXT_SIZE])
{
	static const struct {
		int64_t size;
		const char *name;
	} units[] = {
		{ INT64_C(1) << 30, "Gi" },
		{ 1000000000, "G" },
		{ INT64_C(1) << 20, "Mi" },
		{ 1000000, "M" },
		{ INT64_C(1) << 10, "Ki" },
		{ 1, "" },
	};
	size_t i = 0;

	while (bytes % units[i].size != 0)
		i++;
	snprintf(ret_text, QUANTITY_TEXT_SIZE, "%" PRId64 "%s", bytes / units[i].size, units[i].name);
}
