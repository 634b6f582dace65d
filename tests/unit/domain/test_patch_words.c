/* test_patch_words.c - from the words of the tools to ours. */
/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "domain/exec/patch_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void
tells(const char *out, const char *err, const char *part)
{
	AUTO_FREE char *words = patch_words(out, err);

	assert_non_null(words);
	if (strstr(words, part) == NULL)
		fail_msg("\"%s\" does not have \"%s\"", words, part);
	assert_null(strchr(words, '\n'));
	assert_null(strchr(words, '%'));
}

static void
test_where_it_does_not_fit(void **state)
{
	(void)state;
	tells("",
		"<stdin>:5: trailing whitespace.\nr \nerror: patch failed: src/a b.c:17\nerror: src/a b.c: patch "
		"does not apply\n",
		"does not fit at src/a b.c:17: ");
	tells("patching file a.txt\npatching file b.txt\nHunk #2 FAILED at 31.\n1 out of 2 hunks FAILED\n", "",
		"does not fit at b.txt:31: ");
	tells("patching file a.txt\nHunk #1 succeeded at 3 (offset 2 lines).\npatch: **** malformed patch at line "
	      "5:  \n",
		"", "line 5 of the patch");
}

static void
test_files_that_are_there_or_not(void **state)
{
	(void)state;
	tells("", "error: zz/q: x.txt: No such file or directory\n", "changes zz/q: x.txt, which is not there: ");
	tells(NULL, "error: a.txt: already exists in working directory", "makes a.txt, which is there already");
	tells("can't find file to patch at input line 3\nPerhaps you used the wrong -p", NULL,
		"line 3 of the patch speaks");
	tells("", "error: lib/sub: is a directory or a submodule\n", "about lib/sub, which is a directory or a ");
	tells("",
		"warning: unable to unlink 'd/x': Permission denied\nerror: cannot remove 'd/x': Permission "
		"denied\n",
		"cannot be removed: 'd/x': Permission denied");
	tells("", "error: only git can do what is asked at line 7\n", "line 7 of the patch asks for a rename");
}

static void
test_what_is_no_patch(void **state)
{
	(void)state;
	tells("", "error: No valid patches in input (allow with \"--allow-empty\")\n", "no change in the patch");
	tells("", "error: unrecognized input\n", "no change in the patch");
	tells("", "error: patch with only garbage at line 3\n", "no change in the patch");
	tells("patch: **** Only garbage was found in the patch input.\n", "", "no change in the patch");
	tells("", "error: corrupt patch at line 6\n", "line 6 of the patch");
	tells("", "error: corrupt patch at <stdin>:6\n", "line 6 of the patch");
	tells("", "error: patch fragment without header at line 1: @@ -1 +1 @@\n", "line 1 of the patch begins");
	tells("", "error: unable to find filename in patch at line 9\n", "line 9 of the patch names no file");
	tells("",
		"error: git diff header lacks filename information when removing 1 leading pathname component "
		"(line 2)\n",
		"'diff --git'");
	tells("", "error: invalid path '../x'\n", "leads to '../x'");
}

/* Both places that were tried speak; where the file is, it tells more. */
static void
test_a_place_tells_more_than_a_missing_file(void **state)
{
	(void)state;
	tells("",
		"error: sub/a: No such file or directory\nand from the top of the repository, /srv:\nerror: patch "
		"failed: sub/a:2\n",
		"does not fit at sub/a:2: ");
	tells("", "error: b: No such file or directory\nerror: patch failed: a:1\n", "does not fit at a:1: ");
}

static void
test_other_words_are_left_alone(void **state)
{
	static const char *const others[] = { NULL, "", "\n", "error: ", "error: patch",
		"No such file or directory", "Hunk #1 FAILED at 3.", "patching file a\nHunk #1 FAILED at x",
		"fatal: out of memory\n", "x error: patch failed: a:1" };

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
		for (int stream = 0; stream < 2; stream++) {
			char *words = patch_words(stream == 0 ? others[i] : NULL, stream == 1 ? others[i] : NULL);

			if (words != NULL)
				fail_msg("\"%s\" became \"%s\"", others[i], words);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_it_does_not_fit),
		cmocka_unit_test(test_files_that_are_there_or_not),
		cmocka_unit_test(test_what_is_no_patch),
		cmocka_unit_test(test_a_place_tells_more_than_a_missing_file),
		cmocka_unit_test(test_other_words_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
