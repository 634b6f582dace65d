/*
 * patch_words.c - the words of git apply and of GNU's patch, known by the line that matters most.
 *
 * Both say much about one mistake, and twice when the top of a repository was tried as well. A place in a file that does
 * not fit tells more than a file that is not there, so the first rule that any line fits is the one.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/patch_words.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789"
#define NAMES  "names count from cwd, and their first component (a/, b/) does not"
#define NO_HUNK                                                                                                    \
	"there is no change in the patch: "                                                                        \
	"each needs '--- a/FILE', '+++ b/FILE' and '@@ -LINE,COUNT +LINE,COUNT @@' above it"
#define COUNTS                                                                                                     \
	"line %s of the patch is not what the '@@' above it promises: "                                            \
	"its counts must be those of the lines below it, and a line that stays begins with a space"
#define NO_FIT                                                                                                     \
	"the patch does not fit at %s: what stands there is not what it says; make it anew from the file as it is"

/* %s: what stands between the two; without a %s in the words it is not told. */
struct rule {
	const char *before, *behind; /* of a line; behind NULL: up to its end */
	bool number; /* only the number at the end of what stands between */
	const char *words;
};

static const struct rule rules[] = {
	{ "error: patch failed: ", NULL, false, NO_FIT },
	{ "error: ", ": already exists in working directory", false,
		"the patch makes %s, which is there already: change it, or remove it first" },
	{ "error: ", ": No such file or directory", false, "the patch changes %s, which is not there: " NAMES },
	{ "can't find file to patch at input line ", NULL, true,
		"the file that line %s of the patch speaks of is not there: " NAMES },
	{ "error: ", ": is a directory or a submodule", false,
		"the patch is about %s, which is a directory or a submodule: only files can be patched" },
	{ "error: cannot remove ", NULL, false, "the patch removes a file that cannot be removed: %s" },
	{ "error: only git can do what is asked at ", NULL, true,
		"line %s of the patch asks for a rename, a mode, a link, an empty or a binary file, which the "
		"patch of "
		"the image does not know: put git into the image" },
	{ "error: corrupt patch at ", NULL, true, COUNTS },
	{ "patch: **** malformed patch at line ", ":", false, COUNTS },
	{ "error: patch fragment without header at ", ": @@", true,
		"line %s of the patch begins a change of no file: put '--- a/FILE' and '+++ b/FILE' above it" },
	{ "error: patch with only garbage at ", NULL, true, NO_HUNK },
	{ "error: unable to find filename in patch at ", NULL, true,
		"line %s of the patch names no file: write '--- a/FILE' and '+++ b/FILE'" },
	{ "error: git diff header lacks filename information", NULL, false,
		"a 'diff --git' in the patch names no file: write 'diff --git a/FILE b/FILE'" },
	{ "error: invalid path ", NULL, false, "the patch leads to %s, out of the directory or into git's own" },
	{ "error: No valid patches in input", NULL, false, NO_HUNK },
	{ "error: unrecognized input", NULL, false, NO_HUNK },
	{ "patch: **** Only garbage was found in the patch input", NULL, false, NO_HUNK },
};

struct line {
	const char *at;
	size_t len;
};

/* The next line of *text, which moves on; false: there is none. */
static bool
next_line(const char **text, struct line *ret_line)
{
	if (*text == NULL || **text == '\0')
		return false;
	ret_line->at = *text;
	ret_line->len = strcspn(*text, "\n");
	*text += ret_line->len + ((*text)[ret_line->len] == '\n');
	return true;
}

static bool
starts_with(struct line line, const char *word)
{
	return line.len >= strlen(word) && memcmp(line.at, word, strlen(word)) == 0;
}

/* What a line says between the two words of the rule. */
static bool
between(struct line line, const struct rule *rule, struct line *ret_part)
{
	size_t before = strlen(rule->before), behind = rule->behind != NULL ? strlen(rule->behind) : 0;
	struct line part = { line.at + before, line.len - before };

	if (!starts_with(line, rule->before))
		return false;
	for (size_t at = 0; rule->behind != NULL; at++) {
		if (at + behind > part.len)
			return false;
		if (memcmp(part.at + at, rule->behind, behind) != 0)
			continue;
		part.len = at;
		break;
	}
	*ret_part = part;
	return true;
}

/* "line 6", "<stdin>:6" and "6" are "6". */
static struct line
last_number(struct line part)
{
	size_t begin = part.len;

	while (begin > 0 && part.at[begin - 1] >= '0' && part.at[begin - 1] <= '9')
		begin--;
	return (struct line){ part.at + begin, part.len - begin };
}

static char *
tell(const struct rule *rule, struct line part)
{
	const char *hole = strstr(rule->words, "%s");

	if (rule->number)
		part = last_number(part);
	if (hole == NULL)
		return alloc_string(rule->words);
	return alloc_format("%.*s%.*s%s", (int)(hole - rule->words), rule->words, (int)part.len, part.at, hole + 2);
}

/* GNU's patch names the file on a line of its own, before what it says of it. */
static char *
tell_hunk(const char *out)
{
	struct line line, file = { .len = 0 };

	while (next_line(&out, &line)) {
		const char *failed = memmem(line.at, line.len, " FAILED at ", strlen(" FAILED at "));
		const char *number = failed != NULL ? failed + strlen(" FAILED at ") : "";
		AUTO_FREE char *place = NULL;

		if (starts_with(line, "patching file "))
			file = (struct line){ line.at + strlen("patching file "),
				line.len - strlen("patching file ") };
		if (!starts_with(line, "Hunk #") || strspn(number, DIGITS) == 0 || file.len == 0)
			continue;
		place = alloc_format("%.*s:%.*s", (int)file.len, file.at, (int)strspn(number, DIGITS), number);
		return alloc_format(NO_FIT, place);
	}
	return NULL;
}

char *
patch_words(const char *out, const char *err)
{
	char *words = tell_hunk(out);

	for (size_t i = 0; words == NULL && i < sizeof rules / sizeof rules[0]; i++) {
		const char *texts[] = { err, out };
		struct line line, part;

		for (size_t t = 0; t < 2; t++)
			for (const char *text = texts[t]; words == NULL && next_line(&text, &line);)
				if (between(line, &rules[i], &part))
					words = tell(&rules[i], part);
	}
	return words;
}
