/* test_orchard_conf.c - the shipped orchard.conf names every setting, with its true default. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static const char *const setting_names[] = {
#define SETTING_STRING(name, ...) #name,
#define SETTING_LIST(name, ...)   #name,
#define SETTING_INT(name, ...)    #name,
#define SETTING_SIZE(name, ...)   #name,
#define SETTING_NUMBER(name, ...) #name,
#define SETTING_BOOL(name, ...)   #name,
#include "conf/settings.def"
};

static char *
read_shipped(void)
{
	const char *srcdir = getenv("srcdir");
	char path[512];
	char *text;
	struct err err;
	size_t len;

	snprintf(path, sizeof path, "%s/conf/orchard.conf", srcdir != NULL ? srcdir : ".");
	assert_int_equal(file_read_at(AT_FDCWD, path, 1 << 20, &text, &len, &err), 0);
	return text;
}

static void
test_every_setting_stands_in_it_once(void **state)
{
	AUTO_FREE char *text = read_shipped();

	(void)state;
	for (size_t i = 0; i < sizeof setting_names / sizeof *setting_names; i++) {
		char line[80];
		const char *first;

		snprintf(line, sizeof line, "\n#%s = ", setting_names[i]);
		first = strstr(text, line);
		if (first == NULL)
			fail_msg("conf/orchard.conf does not name %s", setting_names[i]);
		assert_null(strstr(first + 1, line));
	}
}

/* A copy in which each "#name = value" is active, loaded. */
static struct config *
load_uncommented(const char *text)
{
	char path[] = "/tmp/test-conf-XXXXXX";
	int fd = mkstemp(path);
	FILE *copy = fdopen(fd, "w");
	struct config *config = NULL;
	struct err err;

	for (const char *p = text; *p != '\0'; p++)
		if (*p != '#' || !islower((unsigned char)p[1]) || (p != text && p[-1] != '\n'))
			fputc(*p, copy);
	fclose(copy);
	if (config_load(path, &config, &err) < 0) {
		unlink(path);
		fail_msg("%s", err.msg);
	}
	unlink(path);
	return config;
}

#define ASSERT_SAME(name, equal)                                                                                   \
	if (!(equal))                                                                                              \
		fail_msg("conf/orchard.conf tells another default of " #name);

static void
test_the_values_in_it_are_the_defaults(void **state)
{
	AUTO_FREE char *text = read_shipped();
	struct config *shipped;
	struct config *built;
	struct err err;

	(void)state;
	clearenv();
	setenv("API_KEYS", "a-key-for-the-test", 1);
	/* Where things were installed is the build's choice, not the file's. */
	setenv("STATE_DIR", "/x", 1);
	setenv("AGENT_PATH", "/x", 1);
	shipped = load_uncommented(text);
	assert_int_equal(config_load(NULL, &built, &err), 0);
#define SETTING_STRING(name, ...) ASSERT_SAME(name, strcmp(shipped->name, built->name) == 0)
#define SETTING_LIST(name, ...)   ASSERT_SAME(name, shipped->name.count == built->name.count)
#define SETTING_INT(name, ...)    ASSERT_SAME(name, shipped->name == built->name)
#define SETTING_SIZE(name, ...)   ASSERT_SAME(name, shipped->name == built->name)
#define SETTING_NUMBER(name, ...)                                                                                  \
	ASSERT_SAME(name, !(shipped->name < built->name) && !(shipped->name > built->name))
#define SETTING_BOOL(name, ...) ASSERT_SAME(name, shipped->name == built->name)
#include "conf/settings.def"
	config_free(shipped);
	config_free(built);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_setting_stands_in_it_once),
		cmocka_unit_test(test_the_values_in_it_are_the_defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
