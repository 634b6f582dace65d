/*
 * fuzz_agent_files.c - what a file call asks for: Range and its kin, and the names in a patch.
 *
 * The input is three lines and a size: Range, If-Range, If-None-Match; all of it is also read as a patch.
 */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "agent/files/range.h"
#include "agent/patch/names.h"

static const char etag[] = "\"1-2-3\"";

static void
check_range(const struct range_ask *ask, int64_t size)
{
	struct range range = { 0 };
	int status = range_decide(ask, etag, size, &range);

	FUZZ_CHECK(status == 200 || status == 206 || status == 304 || status == 416);
	FUZZ_CHECK(
		range.first >= 0 && range.length >= 0 && range.first <= size && range.length <= size - range.first);
	if (status == 206)
		FUZZ_CHECK(range.length > 0);
	if (status == 200)
		FUZZ_CHECK(range.first == 0 && range.length == size);
}

static void
check_names(const uint8_t *data, size_t len)
{
	struct patch_names names;

	patch_names_read((const char *)data, len, &names);
	for (size_t i = 0; i < names.count; i++) {
		FUZZ_CHECK(names.list[i][0] != '\0');
		FUZZ_CHECK(i == 0 || strcmp(names.list[i - 1], names.list[i]) < 0);
	}
	patch_names_fini(&names);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FREE char *text = fuzz_string(data, len);
	char *rest = text, *line[4];

	for (size_t i = 0; i < 4; i++)
		line[i] = strsep(&rest, "\n");
	for (size_t i = 0; i < 8; i++) {
		struct range_ask ask = {
			.range = i & 1 ? line[0] : NULL,
			.if_range = i & 2 ? line[1] : NULL,
			.if_none_match = i & 4 ? line[2] : NULL,
		};
		int64_t size = line[3] != NULL ? strtoll(line[3], NULL, 10) : 1000;

		check_range(&ask, size < 0 ? 0 : size);
	}
	check_names(data, len);
	return 0;
}
