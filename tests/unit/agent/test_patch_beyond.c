/* test_patch_beyond.c - what only git can do, and that nothing else is taken for it. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/beyond.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define GIT  "diff --git a/f b/f\n"
#define HUNK "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+y\n"

static const struct {
	size_t other, gnu; /* the line that is found */
	const char *text;
} cases[] = {
	{ 0, 0, "" },
	{ 0, 0, HUNK },
	{ 0, 0, GIT "index 1..2 100644\n" HUNK GIT HUNK },
	{ 0, 0, GIT "new file mode 100644\nindex 0..1\n" HUNK },
	{ 0, 0, GIT "deleted file mode 100755\n" HUNK },
	{ 2, 0, GIT "new file mode 100755\n" HUNK },
	{ 2, 0, GIT "new file mode 120000\r\n" HUNK },
	{ 2, 0, GIT "old mode 100644\nnew mode 100755\n" HUNK },
	{ 3, 0, GIT "similarity index 9%\nrename from f\nrename to g\n" HUNK },
	{ 2, 0, GIT "copy from f\ncopy to g" },
	{ 2, 0, GIT "GIT binary patch\nliteral 0\n" },
	/* nothing follows, or the next file */
	{ 1, 0, GIT "new file mode 100644\nindex 0..1\n" },
	{ 1, 0, GIT "deleted file mode 100644\n" GIT HUNK },
	{ 7, 0, GIT HUNK GIT },
	{ 8, 8, GIT HUNK GIT "Binary files a/f and b/f differ\n" },
	/* words of a message, and lines of a file */
	{ 0, 0, "rename from here\nBinary files a and b differ\n" HUNK "old mode of thought\n" },
	{ 0, 0, GIT "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n rename from x\n-x\n+GIT binary patch\n" },
};

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const char *text = cases[i].text;

		assert_int_equal(patch_find_beyond(text, strlen(text), false), cases[i].other);
		assert_int_equal(patch_find_beyond(text, strlen(text), true), cases[i].gnu);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
