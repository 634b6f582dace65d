/* fuzz_json.c - what the strict reader accepts, it accepts again in its own writing. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_JSON struct json_object *value = NULL, *again = NULL;
	struct err err;
	const char *text;
	size_t text_len;

	value = json_parse((const char *)data, len, &err);
	if (value == NULL)
		return 0;
	text = json_text(value, &text_len);
	again = json_parse(text, text_len, &err);
	if (again == NULL || !json_object_equal(value, again))
		abort();
	return 0;
}
