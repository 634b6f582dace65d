/* fuzz_kit.h - what the targets share: an input as text, a configuration, and a check that ends the run. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_FUZZ_KIT_H
#define ORCHARD_TESTS_FUZZ_KIT_H

#include "base/cleanup.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FUZZ_CHECK(condition)                                                                                      \
	do {                                                                                                       \
		if (!(condition))                                                                                  \
			abort();                                                                                   \
	} while (0)

/* A string of exactly its size, so that a read behind its end is seen; it ends at the input's first NUL. */
static inline char *
fuzz_string(const uint8_t *data, size_t len)
{
	char *text = malloc(strnlen((const char *)data, len) + 1);

	FUZZ_CHECK(text != NULL);
	memcpy(text, data, strnlen((const char *)data, len));
	text[strnlen((const char *)data, len)] = '\0';
	return text;
}

#endif
