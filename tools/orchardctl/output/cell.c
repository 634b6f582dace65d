/* cell.c - control characters made visible, times and sizes made short. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/output/cell.h"
#include "base/alloc.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>

/* C0, DEL, and C1, which in UTF-8 is two bytes. */
static size_t
control_len(const char *text)
{
	unsigned char c = (unsigned char)text[0];

	if (c < 0x20 || c == 0x7f)
		return 1;
	return c == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0 ? 2 : 0;
}

static char *
escape_to(char *out, const char *text, size_t len)
{
	unsigned char c = (unsigned char)text[len - 1];

	if (c == '\n' || c == '\t' || c == '\r')
		return stpcpy(out, c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r");
	return out + sprintf(out, "\\x%02x", c);
}

static char *
cell_shown(const char *text, const char *kept)
{
	AUTO_FREE char *valid = alloc_string(text);
	char *shown, *out;

	text_utf8_mend(valid);
	shown = out = alloc_bytes(4 * strlen(valid) + 1);
	for (const char *p = valid; *p != '\0';) {
		size_t len = control_len(p);

		if (len == 0 || strchr(kept, *p) != NULL) {
			*out++ = *p++;
			continue;
		}
		out = escape_to(out, p, len);
		p += len;
	}
	*out = '\0';
	return shown;
}

char *
cell_line(const char *text)
{
	return cell_shown(text, "");
}

char *
cell_lines(const char *text)
{
	return cell_shown(text, "\n\t");
}

char *
cell_duration(double seconds)
{
	static const struct {
		long long below, unit, part;
		char name, part_name;
	} forms[] = { { 3600, 60, 1, 'm', 's' }, { 86400, 3600, 60, 'h', 'm' }, { 0, 86400, 3600, 'd', 'h' } };
	long long whole = (long long)seconds;

	if (!(seconds >= 0))
		seconds = 0, whole = 0;
	if (seconds < 9.995)
		return alloc_format("%.2gs", round(seconds * 100) / 100);
	if (seconds > 1e9)
		return alloc_string("never");
	if (whole < 60)
		return alloc_format("%llds", whole);
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		long long rest = whole % forms[i].unit / forms[i].part;

		if (forms[i].below != 0 && whole >= forms[i].below)
			continue;
		if (rest == 0)
			return alloc_format("%lld%c", whole / forms[i].unit, forms[i].name);
		return alloc_format("%lld%c%lld%c", whole / forms[i].unit, forms[i].name, rest, forms[i].part_name);
	}
	return alloc_string("");
}

char *
cell_bytes(double bytes)
{
	static const char *const units[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi" };
	size_t i = 0;

	while (fabs(bytes) >= 1024 && i + 1 < sizeof units / sizeof *units) {
		bytes /= 1024;
		i++;
	}
	if (bytes >= 100 || bytes == floor(bytes))
		return alloc_format("%.0f%s", bytes, units[i]);
	return alloc_format("%.1f%s", bytes, units[i]);
}

size_t
cell_width(const char *text)
{
	size_t len = strlen(text), width = 0;

	for (size_t i = 0; i < len; width++) {
		bool valid;

		i += text_utf8_step(text + i, len - i, &valid);
	}
	return width;
}
