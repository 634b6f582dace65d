/* fuzz_egress.c - a destination that is taken is the same when it is read from its own writing. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "base/err.h"
#include "base/ip_dest.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FREE char *text = fuzz_string(data, len);
	struct ip_dest range, again, copy;
	char written[IP_DEST_TEXT_SIZE];
	struct err err;

	if (ip_dest_parse(text, &range, &err) != 0)
		return 0;
	FUZZ_CHECK(ip_dest_is_formed(&range) && ip_dest_contains(&range, &range));
	FUZZ_CHECK(ip_dest_is_v4(&range) == (text[strcspn(text, ".:")] == '.'));
	ip_dest_text(&range, written);
	FUZZ_CHECK(ip_dest_parse(written, &again, &err) == 0);
	FUZZ_CHECK(memcmp(&range, &again, sizeof range) == 0);
	ip_dest_cidr(&range, written);
	FUZZ_CHECK(ip_dest_parse(written, &copy, &err) == 0 && copy.port == 0);
	copy.port = range.port;
	FUZZ_CHECK(memcmp(&range, &copy, sizeof range) == 0);
	return 0;
}
