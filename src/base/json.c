/*
 * json.c - text to values and back, without recursion.
 *
 * json-c holds the values; its own parser is lenient (leading zeros, single quotes,
 * raw control characters, lone surrogates, keys cut at a NUL), so the text is read
 * here. A container is put into its parent when it opens: whatever goes wrong, one
 * put of the root frees all.
 */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "base/err.h"
#include "base/json_scan.h"
#include "base/json_write.h"

#include <json-c/json_object.h>
#include <limits.h>
#include <string.h>

enum { SHORT_KEY = 64 };

enum parse_state { PARSE_VALUE, PARSE_KEY, PARSE_AFTER, PARSE_DONE, PARSE_FAILED };

struct parse {
	struct json_scan scan;
	size_t values, depth;
	struct json_object *root;
	struct json_object *open[JSON_MAX_DEPTH]; /* borrowed: the containers around pos */
	size_t key_pos;
	char *long_key; /* owned */
	char short_key[SHORT_KEY];
};

static const char *
parse_key(const struct parse *parse)
{
	return parse->long_key != NULL ? parse->long_key : parse->short_key;
}

static void
parse_set_key(struct parse *parse, const struct json_piece *piece)
{
	char *key = parse->short_key;

	free(parse->long_key);
	parse->long_key = NULL;
	if (piece->len >= SHORT_KEY)
		key = parse->long_key = must_alloc(malloc(piece->len + 1));
	memcpy(key, piece->text, piece->len);
	key[piece->len] = '\0';
}

/* Takes value, and puts it where pos stands. */
static enum parse_state
parse_add(struct parse *parse, struct json_object *value)
{
	struct json_object *parent;

	if (parse->depth == 0) {
		parse->root = value;
		return PARSE_AFTER;
	}
	parent = parse->open[parse->depth - 1];
	if (json_object_is_type(parent, json_type_array)) {
		if (json_object_array_add(parent, value) != 0)
			abort();
		return PARSE_AFTER;
	}

	/* One of the same name is replaced, and the object is no longer than before. */
	int members = json_object_object_length(parent);

	if (json_object_object_add(parent, parse_key(parse), value) != 0)
		abort();
	if (json_object_object_length(parent) != members)
		return PARSE_AFTER;
	json_scan_fail(&parse->scan, parse->key_pos, "duplicate key '%.64s'", parse_key(parse));
	return PARSE_FAILED;
}

static enum parse_state
parse_open(struct parse *parse, bool is_object)
{
	struct json_object *value;

	if (parse->depth == JSON_MAX_DEPTH) {
		json_scan_fail(&parse->scan, parse->scan.pos, "nested more than %d deep", JSON_MAX_DEPTH);
		return PARSE_FAILED;
	}
	parse->scan.pos++;
	value = must_alloc(is_object ? json_object_new_object() : json_object_new_array());
	if (parse_add(parse, value) == PARSE_FAILED)
		return PARSE_FAILED;
	if (json_scan_next(&parse->scan) == (is_object ? '}' : ']')) {
		parse->scan.pos++;
		return PARSE_AFTER;
	}
	parse->open[parse->depth++] = value;
	return is_object ? PARSE_KEY : PARSE_VALUE;
}

static bool
parse_leaf(struct parse *parse, int c, struct json_object **ret_value)
{
	struct json_piece piece;

	if (c == '-' || (c >= '0' && c <= '9'))
		return json_scan_number(&parse->scan, ret_value);
	if (c != '"')
		return json_scan_word(&parse->scan, ret_value);
	if (!json_scan_string(&parse->scan, false, &piece))
		return false;
	*ret_value = must_alloc(json_object_new_string_len(piece.text, (int)piece.len));
	free(piece.owned);
	return true;
}

static enum parse_state
parse_value(struct parse *parse)
{
	int c = json_scan_next(&parse->scan);
	struct json_object *value;

	if (++parse->values > JSON_MAX_VALUES) {
		json_scan_fail(&parse->scan, parse->scan.pos, "more than %d values", JSON_MAX_VALUES);
		return PARSE_FAILED;
	}
	if (c == '{' || c == '[')
		return parse_open(parse, c == '{');
	return parse_leaf(parse, c, &value) ? parse_add(parse, value) : PARSE_FAILED;
}

static enum parse_state
parse_name(struct parse *parse)
{
	struct json_scan *scan = &parse->scan;
	struct json_piece piece;

	if (json_scan_next(scan) != '"') {
		json_scan_expected(scan, "a key in double quotes");
		return PARSE_FAILED;
	}
	parse->key_pos = scan->pos;
	if (!json_scan_string(scan, true, &piece))
		return PARSE_FAILED;
	parse_set_key(parse, &piece);
	free(piece.owned);
	if (json_scan_next(scan) != ':') {
		json_scan_expected(scan, "':'");
		return PARSE_FAILED;
	}
	scan->pos++;
	return PARSE_VALUE;
}

static enum parse_state
parse_after(struct parse *parse)
{
	int c = json_scan_next(&parse->scan);
	bool in_object;

	if (parse->depth == 0) {
		if (c < 0)
			return PARSE_DONE;
		json_scan_expected(&parse->scan, "nothing behind the value");
		return PARSE_FAILED;
	}
	in_object = json_object_is_type(parse->open[parse->depth - 1], json_type_object);
	if (c == (in_object ? '}' : ']')) {
		parse->scan.pos++;
		parse->depth--;
		return PARSE_AFTER;
	}
	if (c != ',') {
		json_scan_expected(&parse->scan, in_object ? "',' or '}'" : "',' or ']'");
		return PARSE_FAILED;
	}
	parse->scan.pos++;
	return in_object ? PARSE_KEY : PARSE_VALUE;
}

static enum parse_state
parse_run(struct parse *parse)
{
	enum parse_state state = PARSE_VALUE;

	while (state != PARSE_DONE && state != PARSE_FAILED) {
		if (state == PARSE_VALUE)
			state = parse_value(parse);
		else if (state == PARSE_KEY)
			state = parse_name(parse);
		else
			state = parse_after(parse);
	}
	free(parse->long_key);
	return state;
}

static struct json_object *
parse_text(const char *text, size_t len, bool names, struct err *err)
{
	struct parse parse;

	/* Field by field: clearing all of it would cost more than reading a short text. */
	parse.scan = (struct json_scan){ .text = text, .len = len, .err = err, .names = names };
	parse.values = parse.depth = 0;
	parse.root = NULL;
	parse.long_key = NULL;
	if (len >= INT_MAX) {
		err_set(err, ERR_INVALID, "invalid JSON: longer than %d bytes", INT_MAX - 1);
	} else if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		json_scan_fail(&parse.scan, 0, "byte-order mark; send UTF-8 without it");
	} else if (parse_run(&parse) == PARSE_DONE) {
		if (parse.root != NULL)
			return parse.root;
		err_set(err, ERR_INVALID, "invalid JSON: the whole text is null");
	}
	json_object_put(parse.root);
	return NULL;
}

struct json_object *
json_parse(const char *text, size_t len, struct err *err)
{
	return parse_text(text, len, false, err);
}

struct json_object *
json_parse_names(const char *text, size_t len, struct err *err)
{
	return parse_text(text, len, true, err);
}

static void
text_free(struct json_object *value, void *text)
{
	(void)value;
	free(text);
}

const char *
json_text(struct json_object *value, size_t *ret_len)
{
	static bool format_set;
	size_t len;
	char *text;

	if (!format_set) {
		/* json-c's own choice writes 0.1 as 0.10000000000000001. */
		json_c_set_serialization_double_format("%.16g", JSON_C_OPTION_GLOBAL);
		format_set = true;
	}
	if (ret_len == NULL)
		ret_len = &len;
	/* The text is the value's, by the place json-c has for that; a fraction has its own text there. */
	if (value == NULL || json_object_is_type(value, json_type_double))
		return must_alloc((void *)(uintptr_t)json_object_to_json_string_length(
			value, JSON_C_TO_STRING_PLAIN, ret_len));
	text = json_write(value, ret_len);
	json_object_set_userdata(value, text, text_free);
	return text;
}

void
cleanup_json(struct json_object **value)
{
	json_object_put(*value);
}
