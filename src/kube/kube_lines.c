/* kube_lines.c - only what is no whole line yet is kept. */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_lines.h"

#include "base/alloc.h"
#include "base/err.h"

#include <string.h>

enum { ROOM_FIRST = 4096 };

static int
keep(struct kube_lines *lines, const char *data, size_t len, struct err *err)
{
	if (len > lines->max - lines->len)
		return err_set(err, ERR_TOO_LARGE, "a line of the watch is longer than %zu bytes", lines->max);
	if (lines->len + len > lines->room) {
		lines->room = lines->room != 0 ? lines->room : ROOM_FIRST;
		while (lines->room < lines->len + len)
			lines->room *= 2;
		lines->data = alloc_resize(lines->data, lines->room);
	}
	memcpy(lines->data + lines->len, data, len);
	lines->len += len;
	return 0;
}

int
kube_lines_feed(struct kube_lines *lines, const char *data, size_t len, kube_line_f *fn, void *arg, struct err *err)
{
	while (len > 0) {
		const char *end = memchr(data, '\n', len);
		size_t piece = end != NULL ? (size_t)(end - data) : len;
		bool more = true;

		if ((end == NULL || lines->len > 0 || piece > lines->max) && keep(lines, data, piece, err) != 0)
			return -1;
		if (end == NULL)
			return 0;
		if (lines->len > 0) {
			AUTO_FREE char *line = STEAL_PTR(lines->data);
			size_t line_len = lines->len;

			lines->len = lines->room = 0;
			more = fn(arg, line, line_len);
		} else if (piece > 0) {
			more = fn(arg, data, piece);
		}
		if (!more)
			return 0;
		data += piece + 1;
		len -= piece + 1;
	}
	return 0;
}

bool
kube_lines_clear(struct kube_lines *lines)
{
	bool had = lines->len > 0;

	free(STEAL_PTR(lines->data));
	lines->len = lines->room = 0;
	return had;
}
