/* sse.c - lines to fields to events; an event that was cut off at the end of a stream is none. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/attach/sse.h"
#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 64 << 20 };

void
sse_fini(struct sse *sse)
{
	free(sse->line);
	free(sse->data);
	*sse = (struct sse){ 0 };
}

static void
add_data(struct sse *sse, const char *value, size_t len)
{
	sse->data = alloc_resize(sse->data, sse->data_len + len + 2);
	memcpy(sse->data + sse->data_len, value, len);
	sse->data_len += len;
	sse->data[sse->data_len++] = '\n';
	sse->data[sse->data_len] = '\0';
}

static int
end_event(struct sse *sse, sse_event_fn on_event, void *arg)
{
	int rc = 0;

	if (sse->data != NULL) {
		sse->data[--sse->data_len] = '\0';
		rc = on_event(sse->event, sse->data, sse->data_len, arg);
	}
	free(sse->data);
	sse->data = NULL;
	sse->data_len = 0;
	sse->event[0] = '\0';
	return rc;
}

static int
take_line(struct sse *sse, const char *line, size_t len, sse_event_fn on_event, void *arg)
{
	const char *colon, *value;
	size_t value_len, name_len;

	if (len > 0 && line[len - 1] == '\r')
		len--;
	if (len == 0)
		return end_event(sse, on_event, arg);
	colon = memchr(line, ':', len);
	name_len = colon != NULL ? (size_t)(colon - line) : len;
	value = colon != NULL ? colon + 1 : line + len;
	value_len = (size_t)(line + len - value);
	if (value_len > 0 && *value == ' ') {
		value++;
		value_len--;
	}
	if (name_len == 4 && memcmp(line, "data", 4) == 0)
		add_data(sse, value, value_len);
	else if (name_len == 5 && memcmp(line, "event", 5) == 0)
		snprintf(sse->event, sizeof sse->event, "%.*s", (int)(value_len < 31 ? value_len : 31), value);
	return 0;
}

/* What is left is the beginning of a line. */
static int
keep(struct sse *sse, const char *bytes, size_t len)
{
	if (sse->len + len > LINE_MAX_BYTES)
		return -1;
	if (sse->len + len > sse->size) {
		sse->size = 2 * (sse->len + len);
		sse->line = alloc_resize(sse->line, sse->size);
	}
	memcpy(sse->line + sse->len, bytes, len);
	sse->len += len;
	return 0;
}

int
sse_take(struct sse *sse, const char *bytes, size_t len, sse_event_fn on_event, void *arg)
{
	const char *end;
	int rc = 0;

	while (rc == 0 && len > 0 && (end = memchr(bytes, '\n', len)) != NULL) {
		size_t piece = (size_t)(end - bytes);

		if (sse->len > 0) {
			rc = keep(sse, bytes, piece);
			if (rc == 0)
				rc = take_line(sse, sse->line, sse->len, on_event, arg);
			sse->len = 0;
		} else {
			rc = take_line(sse, bytes, piece, on_event, arg);
		}
		bytes = end + 1;
		len -= piece + 1;
	}
	return rc == 0 && len > 0 ? keep(sse, bytes, len) : rc;
}
