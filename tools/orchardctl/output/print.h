/*
 * print.h - results on stdout, in the form that -o asks for.
 *
 * A result is JSON as the server sent it. For people, columns say which of its members are shown and how; json and
 * yaml show all of it; name shows what identifies it.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_OUTPUT_PRINT_H
#define ORCHARDCTL_OUTPUT_PRINT_H

#include "orchardctl/command.h"

#include <stdbool.h>

struct json_object;

enum column_kind {
	COLUMN_TEXT,
	COLUMN_STATUS, /* coloured by what it says */
	COLUMN_SINCE, /* Unix seconds: how long ago */
	COLUMN_UNTIL, /* Unix seconds: in how long */
	COLUMN_SECONDS,
	COLUMN_BYTES,
	COLUMN_CORES,
	COLUMN_MAP, /* an object: "a=1,b=2" */
	COLUMN_BOOL, /* yes, no */
};

struct column {
	const char *title; /* "MEMORY"; in the view of one thing "memory" */
	const char *key; /* member of the object; "usage.cpu_s": of an object in it */
	enum column_kind kind;
	bool detail; /* only in the view of one thing */
};

/* A member of an object, or of one in it ("usage.cpu_s"); NULL: there is none, or it is null. Borrowed. */
struct json_object *print_member(struct json_object *object, const char *key);
struct json_object *print_array(struct json_object *object, const char *key); /* NULL also when it is no array */
const char *print_string(struct json_object *object, const char *key); /* "" for none */

/* How results are printed: -q means names unless -o says otherwise. */
enum output print_output(const struct ctl *ctl);
/* A table, columns ended by one without a title. With empty a remark goes to stderr when there is nothing. */
void print_list(const struct ctl *ctl, struct json_object *items, const struct column *columns,
	const char *name_key, const char *empty);
/* One thing, member by member. */
void print_one(const struct ctl *ctl, struct json_object *item, const struct column *columns, const char *name_key);
/* For tables that grow: rows alike, the title only before the first. json is one line for each. */
struct print_rows {
	const struct column *columns;
	const char *name_key;
	bool begun;
};
void print_row(const struct ctl *ctl, struct print_rows *rows, struct json_object *item);

/* All of it; json indented, or yaml. */
void print_json(struct json_object *value);
void print_yaml(struct json_object *value);
/* A colour that fits a status, "" for none; and the end of colours. */
const char *print_color(const char *status);
#define PRINT_COLOR_END "\033[0m"

#endif
