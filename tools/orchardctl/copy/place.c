/* place.c - names taken apart and put together. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/place.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/id.h"

void
place_read(struct place *place, const char *text)
{
	const char *colon = strchr(text, ':');

	*place = (struct place){ .path = text, .stream = strcmp(text, "-") == 0 };
	if (colon == NULL)
		return;
	place->sandbox = alloc_format("%.*s", (int)(colon - text), text);
	if (id_is_sandbox_id(place->sandbox)) {
		place->path = colon[1] != '\0' ? colon + 1 : ".";
		return;
	}
	place_fini(place);
}

void
place_fini(struct place *place)
{
	free(place->sandbox);
	place->sandbox = NULL;
}

char *
place_name(const char *path)
{
	size_t end = strlen(path), start;

	while (end > 0 && path[end - 1] == '/')
		end--;
	for (start = end; start > 0 && path[start - 1] != '/'; start--)
		;
	if (start == end || (end - start == 1 && path[start] == '.') ||
		(end - start == 2 && path[start] == '.' && path[start + 1] == '.'))
		return NULL;
	return alloc_format("%.*s", (int)(end - start), path + start);
}

char *
place_join(const char *directory, const char *name)
{
	size_t len = strlen(directory);

	while (len > 1 && directory[len - 1] == '/')
		len--;
	return alloc_format("%.*s%s%s", (int)len, directory, len == 1 && directory[0] == '/' ? "" : "/", name);
}

bool
place_is_contents(const char *path)
{
	size_t len = strlen(path);

	return (len == 1 && path[0] == '.') || (len >= 2 && path[len - 1] == '.' && path[len - 2] == '/');
}

bool
place_wants_directory(const char *path)
{
	size_t len = strlen(path);

	return len > 0 && path[len - 1] == '/';
}
