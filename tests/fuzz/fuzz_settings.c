/* fuzz_settings.c - any bytes as the settings file: taken or refused in words, and what is taken can be printed. */
/* SPDX-License-Identifier: MIT */
#include "fuzz_kit.h"

#include "base/err.h"
#include "conf/config.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Tells another file's name; the run must not read what lies around. */
static bool
names_a_file(const uint8_t *data, size_t len)
{
	return memmem(data, len, "api_keys_file", 13) != NULL || memmem(data, len, "include", 7) != NULL;
}

static void
check_printed(const struct config *config)
{
	AUTO_FREE char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	FUZZ_CHECK(out != NULL);
	config_print(config, out);
	fclose(out);
	FUZZ_CHECK(size > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	AUTO_FD fd = memfd_create("settings", MFD_CLOEXEC);
	struct config *config = NULL;
	char path[32];
	struct err err;

	if (names_a_file(data, len))
		return 0;
	FUZZ_CHECK(fd >= 0 && write(fd, data, len) == (ssize_t)len);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (config_load(path, &config, &err) == 0)
		check_printed(config);
	else
		FUZZ_CHECK(err.msg[0] != '\0');
	config_free(config);
	return 0;
}
