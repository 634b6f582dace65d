/* names.c - git's headers, unified ones, and C-style quoting as git writes it. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/names.h"

#include "base/alloc.h"
#include "base/cleanup.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX_PATH = 4095 };

/* A piece of the patch, not terminated. */
struct span {
	const char *at;
	size_t len;
};

static void
names_add(struct patch_names *names, struct span name)
{
	char *path;

	if (name.len == 0 || name.len > NAMES_MAX_PATH || name.at[0] == '/' ||
		memchr(name.at, '\0', name.len) != NULL)
		return;
	if (names->count == names->size) {
		names->size = names->size > 0 ? names->size * 2 : 16;
		names->list = alloc_resize(names->list, names->size * sizeof *names->list);
	}
	path = alloc_bytes(name.len + 1);
	memcpy(path, name.at, name.len);
	path[name.len] = '\0';
	names->list[names->count++] = path;
}

/* Without the first component, as both tools read it with -p1. */
static struct span
names_strip(struct span name)
{
	const char *slash = memchr(name.at, '/', name.len);

	if (slash == NULL)
		return name;
	while (slash < name.at + name.len && *slash == '/')
		slash++;
	return (struct span){ slash, (size_t)(name.at + name.len - slash) };
}

static char
names_escape(const char **at, const char *end)
{
	static const char letters[] = "abtnvfr\"\\", values[] = "\a\b\t\n\v\f\r\"\\";
	const char *letter;
	int value = 0;

	if (**at >= '0' && **at <= '3') {
		for (int i = 0; i < 3 && *at < end && **at >= '0' && **at <= '7'; i++)
			value = value * 8 + *(*at)++ - '0';
		return (char)value;
	}
	letter = strchr(letters, **at);
	value = letter != NULL && *letter != '\0' ? values[letter - letters] : **at;
	(*at)++;
	return (char)value;
}

/* text begins with a quote; the rest behind the closing one is left in it. NULL: not closed. */
static char *
names_unquote(struct span *text, size_t *ret_len)
{
	const char *at = text->at + 1, *end = text->at + text->len;
	AUTO_FREE char *plain = alloc_bytes(text->len);
	size_t len = 0;

	while (at < end && *at != '"') {
		if (*at++ != '\\')
			plain[len++] = at[-1];
		else if (at < end)
			plain[len++] = names_escape(&at, end);
	}
	if (at >= end)
		return NULL;
	at++;
	*text = (struct span){ at, (size_t)(end - at) };
	*ret_len = len;
	return STEAL_PTR(plain);
}

/* One header's name; strip: it has a first component that does not count. */
static void
names_header(struct patch_names *names, struct span text, bool strip)
{
	AUTO_FREE char *plain = NULL;
	const char *tab, *space;
	struct span name;

	if (text.len > 0 && text.at[0] == '"') {
		plain = names_unquote(&text, &name.len);
		if (plain == NULL)
			return;
		name.at = plain;
		names_add(names, strip ? names_strip(name) : name);
		return;
	}
	tab = memchr(text.at, '\t', text.len);
	if (tab != NULL)
		text.len = (size_t)(tab - text.at);
	names_add(names, strip ? names_strip(text) : text);
	/* Some put the time behind a space. */
	space = memchr(text.at, ' ', text.len);
	if (space == NULL || !strip)
		return;
	text.len = (size_t)(space - text.at);
	names_add(names, names_strip(text));
}

/* `diff --git a/NAME b/NAME`: where nothing else names the file, both names are the same. */
static void
names_git(struct patch_names *names, struct span text)
{
	if (text.len > 0 && text.at[0] == '"') {
		names_header(names, text, true);
		return;
	}
	for (size_t i = 1; i + 1 < text.len; i++) {
		struct span left = names_strip((struct span){ text.at, i });
		struct span right = names_strip((struct span){ text.at + i + 1, text.len - i - 1 });

		if (text.at[i] != ' ' || left.len != right.len || memcmp(left.at, right.at, left.len) != 0)
			continue;
		names_add(names, left);
	}
}

static void
names_line(struct patch_names *names, struct span line)
{
	static const struct {
		const char *word;
		bool strip;
	} headers[] = { { "--- ", true }, { "+++ ", true }, { "Index: ", true }, { "rename from ", false },
		{ "rename to ", false }, { "copy from ", false }, { "copy to ", false }, { "diff --git ", true } };

	while (line.len > 0 && line.at[line.len - 1] == '\r')
		line.len--;
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
		size_t len = strlen(headers[i].word);
		struct span rest = { line.at + len, line.len - len };

		if (line.len <= len || memcmp(line.at, headers[i].word, len) != 0)
			continue;
		if (headers[i].word[0] == 'd')
			names_git(names, rest);
		else
			names_header(names, rest, headers[i].strip);
		return;
	}
}

static int
names_compare(const void *left, const void *right)
{
	return strcmp(*(char *const *)left, *(char *const *)right);
}

static void
names_sort(struct patch_names *names)
{
	size_t count = 0;

	if (names->count > 1)
		qsort(names->list, names->count, sizeof *names->list, names_compare);
	for (size_t i = 0; i < names->count; i++) {
		if (count > 0 && strcmp(names->list[count - 1], names->list[i]) == 0)
			free(names->list[i]);
		else
			names->list[count++] = names->list[i];
	}
	names->count = count;
}

void
patch_names_read(const char *text, size_t len, struct patch_names *ret_names)
{
	const char *end = text + len;

	*ret_names = (struct patch_names){ .list = NULL };
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline != NULL ? newline : end;

		names_line(ret_names, (struct span){ text, (size_t)(stop - text) });
		text = newline != NULL ? newline + 1 : end;
	}
	names_sort(ret_names);
}

/* "ADDED<tab>REMOVED<tab>NAME", each ended by a zero byte. */
void
patch_names_read_numstat(const char *text, size_t len, struct patch_names *ret_names)
{
	const char *end = text + len;

	*ret_names = (struct patch_names){ .list = NULL };
	while (text < end) {
		const char *stop = memchr(text, '\0', (size_t)(end - text));
		const char *tab = stop != NULL ? memchr(text, '\t', (size_t)(stop - text)) : NULL;

		tab = tab != NULL ? memchr(tab + 1, '\t', (size_t)(stop - tab - 1)) : NULL;
		if (tab != NULL)
			names_add(ret_names, (struct span){ tab + 1, (size_t)(stop - tab - 1) });
		text = stop != NULL ? stop + 1 : end;
	}
	names_sort(ret_names);
}

void
patch_names_fini(struct patch_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->list[i]);
	free(names->list);
	*names = (struct patch_names){ .list = NULL };
}
