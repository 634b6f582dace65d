/* print.c - tables with aligned columns; the last one may be cut at the edge of the terminal. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/output/print.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/text.h"
#include "orchardctl/command.h"
#include "orchardctl/output/cell.h"

#include <json-c/json.h>
#include <stdio.h>
#include <sys/ioctl.h>

enum { GAP = 3, COLUMNS_MAX = 24, ROW_WIDTH = 12, NAME_WIDTH = 23 };

struct json_object *
print_member(struct json_object *object, const char *key)
{
	const char *dot = strchr(key, '.');
	struct json_object *value = NULL;

	if (dot != NULL) {
		AUTO_FREE char *first = alloc_format("%.*s", (int)(dot - key), key);
		struct json_object *inner = print_member(object, first);

		return inner != NULL ? print_member(inner, dot + 1) : NULL;
	}
	if (!json_object_is_type(object, json_type_object) || !json_object_object_get_ex(object, key, &value))
		return NULL;
	return value;
}

struct json_object *
print_array(struct json_object *object, const char *key)
{
	struct json_object *value = print_member(object, key);

	return json_object_is_type(value, json_type_array) ? value : NULL;
}

const char *
print_string(struct json_object *object, const char *key)
{
	struct json_object *value = print_member(object, key);

	return value != NULL ? json_object_get_string(value) : "";
}

const char *
print_color(const char *status)
{
	static const struct {
		const char *status, *color;
	} colors[] = {
		{ "ready", "\033[32m" },
		{ "succeeded", "\033[32m" },
		{ "running", "\033[36m" },
		{ "pending", "\033[33m" },
		{ "queued", "\033[33m" },
		{ "unschedulable", "\033[33m" },
		{ "failed", "\033[31m" },
		{ "deleted", "\033[2m" },
	};

	for (size_t i = 0; i < sizeof colors / sizeof *colors; i++)
		if (strcmp(colors[i].status, status) == 0)
			return colors[i].color;
	return "";
}

static char *
map_text(struct json_object *map)
{
	char *all = alloc_string("");

	if (!json_object_is_type(map, json_type_object))
		return all;
	json_object_object_foreach(map, key, value)
	{
		AUTO_FREE char *before = all;

		all = alloc_format("%s%s%s=%s", before, before[0] != '\0' ? "," : "", key,
			value != NULL ? json_object_get_string(value) : "");
	}
	return all;
}

/* The value of a column, "-" for none; malloc'ed. */
static char *
column_text(const struct column *column, struct json_object *item)
{
	struct json_object *value = print_member(item, column->key);
	AUTO_FREE char *map = NULL;

	if (value == NULL)
		return alloc_string("-");
	switch (column->kind) {
	case COLUMN_SINCE:
		return cell_duration(clock_wall() - json_object_get_double(value));
	case COLUMN_UNTIL:
		return cell_duration(json_object_get_double(value) - clock_wall());
	case COLUMN_SECONDS:
		return cell_duration(json_object_get_double(value));
	case COLUMN_BYTES:
		return cell_bytes(json_object_get_double(value));
	case COLUMN_CORES:
		return alloc_format("%.3g", json_object_get_double(value));
	case COLUMN_BOOL:
		return alloc_string(json_object_get_boolean(value) ? "yes" : "no");
	case COLUMN_MAP:
		map = map_text(value);
		return map[0] != '\0' ? cell_line(map) : alloc_string("-");
	default:
		return cell_line(json_object_get_string(value));
	}
}

/* Columns of the terminal; 0: stdout is none. */
static size_t
terminal_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static void
cut_to(char *text, size_t width)
{
	size_t len = strlen(text), i = 0;

	if (cell_width(text) <= width)
		return;
	for (size_t n = 0; n + 1 < width && i < len; n++) {
		bool valid;

		i += text_utf8_step(text + i, len - i, &valid);
	}
	strcpy(text + i, len - i >= 3 ? "\xe2\x80\xa6" : "");
}

static void
print_cells(const struct ctl *ctl, const struct column *columns, char *const *cells, const size_t *widths)
{
	size_t room = terminal_width(), at = 0;

	for (size_t i = 0; columns[i].title != NULL; i++) {
		const char *color = cells != NULL && columns[i].kind == COLUMN_STATUS &&
				ctl_is_colored(ctl, STDOUT_FILENO)
			? print_color(cells[i])
			: "";
		char *text = alloc_string(cells != NULL ? cells[i] : columns[i].title);
		size_t width;

		if (columns[i].detail) {
			free(text);
			continue;
		}
		if (columns[i + 1].title == NULL && room > at + 8)
			cut_to(text, room - at);
		width = cell_width(text);
		printf("%s%s%s", color, text, color[0] != '\0' ? PRINT_COLOR_END : "");
		if (columns[i + 1].title != NULL)
			printf("%*s", (int)(widths[i] > width ? widths[i] - width : 0) + GAP, "");
		at += (widths[i] > width ? widths[i] : width) + GAP;
		free(text);
	}
	putchar('\n');
}

static void
print_table(const struct ctl *ctl, struct json_object *items, const struct column *columns)
{
	size_t rows = json_object_array_length(items), widths[COLUMNS_MAX] = { 0 }, count = 0;
	char **cells;

	for (; columns[count].title != NULL; count++)
		widths[count] = strlen(columns[count].title);
	cells = alloc_zero(rows * count + 1, sizeof *cells);
	for (size_t i = 0; i < rows * count; i++) {
		size_t width;

		cells[i] = column_text(&columns[i % count], json_object_array_get_idx(items, i / count));
		width = cell_width(cells[i]);
		if (width > widths[i % count])
			widths[i % count] = width;
	}
	print_cells(ctl, columns, NULL, widths);
	for (size_t i = 0; i < rows; i++)
		print_cells(ctl, columns, cells + i * count, widths);
	for (size_t i = 0; i < rows * count; i++)
		free(cells[i]);
	free(cells);
}

enum output
print_output(const struct ctl *ctl)
{
	return ctl->quiet && !ctl->output_given ? OUTPUT_NAME : ctl->output;
}

static void
print_name(struct json_object *item, const char *name_key)
{
	AUTO_FREE char *name = cell_line(print_string(item, name_key));

	puts(name);
}

void
print_list(const struct ctl *ctl, struct json_object *items, const struct column *columns, const char *name_key,
	const char *empty)
{
	size_t count = json_object_array_length(items);

	switch (print_output(ctl)) {
	case OUTPUT_JSON:
		print_json(items);
		break;
	case OUTPUT_YAML:
		print_yaml(items);
		break;
	case OUTPUT_NAME:
		for (size_t i = 0; i < count; i++)
			print_name(json_object_array_get_idx(items, i), name_key);
		break;
	case OUTPUT_TABLE:
		if (count > 0)
			print_table(ctl, items, columns);
		else
			ctl_note(ctl, "%s", empty);
		break;
	}
}

/* "EXPIRES BY" as "expires by:". */
static void
print_member_line(const struct ctl *ctl, const struct column *column, struct json_object *item, size_t width)
{
	AUTO_FREE char *text = column_text(column, item);
	const char *color = column->kind == COLUMN_STATUS && ctl_is_colored(ctl, STDOUT_FILENO) ? print_color(text)
												: "";
	size_t len = strlen(column->title);

	for (size_t i = 0; i < len; i++) {
		char c = column->title[i];

		putchar(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	printf(":%*s%s%s%s\n", (int)(width - len) + 1, "", color, text, color[0] != '\0' ? PRINT_COLOR_END : "");
}

/* Not what it has not, and not a text without words: the default lane. */
static bool
has_member(struct json_object *item, const struct column *column)
{
	struct json_object *value = print_member(item, column->key);

	return value != NULL &&
		(!json_object_is_type(value, json_type_string) || json_object_get_string_len(value) > 0);
}

void
print_one(const struct ctl *ctl, struct json_object *item, const struct column *columns, const char *name_key)
{
	size_t width = 0;

	switch (print_output(ctl)) {
	case OUTPUT_JSON:
		print_json(item);
		return;
	case OUTPUT_YAML:
		print_yaml(item);
		return;
	case OUTPUT_NAME:
		print_name(item, name_key);
		return;
	case OUTPUT_TABLE:
		break;
	}
	for (const struct column *c = columns; c->title != NULL; c++)
		if (has_member(item, c) && strlen(c->title) > width)
			width = strlen(c->title);
	for (const struct column *c = columns; c->title != NULL; c++)
		if (has_member(item, c))
			print_member_line(ctl, c, item, width);
}

void
print_row(const struct ctl *ctl, struct print_rows *rows, struct json_object *item)
{
	size_t widths[COLUMNS_MAX] = { 0 }, count = 0;
	char *cells[COLUMNS_MAX] = { 0 };

	switch (print_output(ctl)) {
	case OUTPUT_JSON:
		puts(json_object_to_json_string_ext(item, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
		break;
	case OUTPUT_YAML:
		puts("---");
		print_yaml(item);
		break;
	case OUTPUT_NAME:
		print_name(item, rows->name_key);
		break;
	case OUTPUT_TABLE:
		for (; rows->columns[count].title != NULL; count++) {
			/* A name that the server makes up fits. */
			widths[count] = count == 0 ? NAME_WIDTH : ROW_WIDTH;
			cells[count] = column_text(&rows->columns[count], item);
		}
		if (!rows->begun)
			print_cells(ctl, rows->columns, NULL, widths);
		print_cells(ctl, rows->columns, cells, widths);
		while (count > 0)
			free(cells[--count]);
		break;
	}
	rows->begun = true;
	fflush(stdout);
}

void
print_json(struct json_object *value)
{
	puts(json_object_to_json_string_ext(
		value, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE));
}
