/* range.h - what Range, If-Range and If-None-Match (RFC 9110) make of a GET. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_FILES_RANGE_H
#define ORCHARD_AGENT_FILES_RANGE_H

#include <stdint.h>

struct range_ask {
	const char *range, *if_range, *if_none_match; /* as they came; NULL: not given */
};

struct range {
	int64_t first, length; /* what is to be sent; 304 and 416: nothing */
};

/*
 * 200 (all of it), 206, 304 or 416. Several ranges, another unit, or one that cannot be read are as if not given;
 * so is a Range whose If-Range is not this etag.
 */
int range_decide(const struct range_ask *ask, const char *etag, int64_t size, struct range *ret_range);

#endif
