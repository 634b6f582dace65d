/* ip_range.h - a range of IPv4 addresses, and the one port that is meant there, if any. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_IP_RANGE_H
#define ORCHARD_BASE_IP_RANGE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* Plain data without padding: it lies in shared memory and travels in messages. */
struct ip_range {
	uint32_t address; /* host byte order; nothing set right of the prefix */
	uint16_t prefix; /* 0 to 32 */
	uint16_t port; /* 0: all */
};

enum { IP_RANGE_TEXT_SIZE = sizeof "255.255.255.255/32:65535" };

/* "a.b.c.d", with "/bits" and ":port" if wanted. ERR_INVALID says in words what it is not. */
int ip_range_parse(const char *text, struct ip_range *ret_range, struct err *err) MUSTCHECK;
/* The shortest text that ip_range_parse takes for it. */
void ip_range_text(const struct ip_range *range, char ret_text[IP_RANGE_TEXT_SIZE]);

/* A prefix or a port in text[0..len): plain digits, from min to max. */
bool ip_range_number(const char *text, size_t len, unsigned min, unsigned max, uint16_t *ret) MUSTCHECK;

/* The rest is about addresses only; ports are left out. */
uint32_t ip_range_last(const struct ip_range *range);
bool ip_range_contains(const struct ip_range *outer, const struct ip_range *inner);
bool ip_range_overlaps(const struct ip_range *a, const struct ip_range *b);
/* Whether a message or a file could have it: prefix in bounds, nothing set right of it. */
bool ip_range_is_formed(const struct ip_range *range);

#endif
