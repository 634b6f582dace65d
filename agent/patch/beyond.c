/* beyond.c - git's headers, line by line: from `diff --git` to the first line of a hunk. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/beyond.h"

#include <string.h>

/* A line, not terminated. */
struct span {
	const char *at;
	size_t len;
};

static bool
starts_with(struct span line, const char *word)
{
	return line.len >= strlen(word) && memcmp(line.at, word, strlen(word)) == 0;
}

static bool
is_beyond(struct span line, bool is_gnu)
{
	static const char *const words[] = { "rename from ", "copy from ", "old mode ", "GIT binary patch" };

	if (starts_with(line, "Binary files "))
		return true;
	for (size_t i = 0; !is_gnu && i < sizeof words / sizeof words[0]; i++)
		if (starts_with(line, words[i]))
			return true;
	return !is_gnu && starts_with(line, "new file mode ") && !starts_with(line, "new file mode 100644");
}

size_t
patch_find_beyond(const char *text, size_t len, bool is_gnu)
{
	const char *end = text + len;
	size_t header = 0; /* the line of a `diff --git` that has no hunk yet */

	for (size_t number = 1; text < end; number++) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct span line = { text, (size_t)((newline != NULL ? newline : end) - text) };
		bool is_header = starts_with(line, "diff --git ");

		if (header > 0 && is_beyond(line, is_gnu))
			return number;
		if (is_header && header > 0 && !is_gnu)
			return header;
		if (is_header)
			header = number;
		else if (starts_with(line, "--- ") || starts_with(line, "@@ "))
			header = 0;
		text = newline != NULL ? newline + 1 : end;
	}
	return is_gnu ? 0 : header;
}
