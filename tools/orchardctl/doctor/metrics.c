/* metrics.c - lines of Prometheus' text format, as our own server writes them. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/doctor/metrics.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

bool
metrics_value(const char *text, const char *name, double *ret)
{
	size_t len = strlen(name);
	bool found = false;

	*ret = 0;
	for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
		const char *space;

		line += *line == '\n';
		if (strncmp(line, name, len) != 0 || (line[len] != ' ' && line[len] != '{'))
			continue;
		space = strchr(line + len, ' ');
		if (space != NULL)
			*ret += strtod(space, NULL);
		found = true;
	}
	return found;
}

char *
metrics_label(const char *text, const char *name, const char *label)
{
	AUTO_FREE char *begin = alloc_format("%s{%s=\"", name, label);
	const char *at = strstr(text, begin), *value;

	if (at == NULL)
		return NULL;
	value = at + strlen(begin);
	return alloc_format("%.*s", (int)strcspn(value, "\""), value);
}
