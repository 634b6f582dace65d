/* fuzz_config.h - the default settings, for targets whose readers look at some. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_TESTS_FUZZ_CONFIG_H
#define ORCHARD_TESTS_FUZZ_CONFIG_H

#include "fuzz_kit.h"

#include "base/err.h"
#include "conf/config.h"

#include <stdio.h>

/* Made once and kept. */
static inline const struct config *
fuzz_config(void)
{
	static struct config *config;
	struct err err;

	if (config != NULL)
		return config;
	setenv("AUTH_ENABLED", "off", 1);
	if (config_load(NULL, &config, &err) != 0) {
		fprintf(stderr, "%s\n", err.msg);
		abort();
	}
	return config;
}

#endif
