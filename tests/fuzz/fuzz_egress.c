/* fuzz_egress.c - a destination that is taken is the same when it is read from its own writing. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "base/err.h"
#include "base/ip_range.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FREE char *text = fuzz_string(data, len);
	struct ip_range range, again;
	char written[IP_RANGE_TEXT_SIZE];
	struct err err;

	if (ip_range_parse(text, &range, &err) != 0)
		return 0;
	FUZZ_CHECK(ip_range_is_formed(&range) && ip_range_contains(&range, &range));
	FUZZ_CHECK(ip_range_last(&range) >= range.address);
	ip_range_text(&range, written);
	FUZZ_CHECK(ip_range_parse(written, &again, &err) == 0);
	FUZZ_CHECK(memcmp(&range, &again, sizeof range) == 0);
	return 0;
}
