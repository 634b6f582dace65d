/* setting.c - one setting's value: from text, checked against its type and range, and back to text. */
/* SPDX-License-Identifier: MIT */
#include "conf/setting.h"
#include "base/alloc.h"
#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

static const char *const true_words[] = { "on", "true", "yes", "1" };
static const char *const false_words[] = { "off", "false", "no", "0" };

static const struct {
	const char *suffix;
	int64_t factor;
} size_suffixes[] = {
	{ "", 1 },
	{ "K", 1000 },
	{ "M", 1000000 },
	{ "G", 1000000000 },
	{ "Ki", 1 << 10 },
	{ "Mi", 1 << 20 },
	{ "Gi", 1 << 30 },
};

static void *
setting_slot(const struct setting *setting, struct config *config)
{
	return (char *)config + setting->offset;
}

static const void *
setting_value(const struct setting *setting, const struct config *config)
{
	return (const char *)config + setting->offset;
}

static int
setting_refuse(const struct setting *setting, const char *text, const char *is_not, struct err *err)
{
	char range[128];

	setting_describe_range(setting, range, sizeof range);
	return err_set(err, ERR_INVALID, "'%.100s' is not %s; allowed: %s", text, is_not, range);
}

static int
setting_refuse_range(const struct setting *setting, const char *text, struct err *err)
{
	return err_set(
		err, ERR_INVALID, "'%.100s' is not between %.15g and %.15g", text, setting->min, setting->max);
}

static int
setting_parse_bool(const struct setting *setting, bool *ret, const char *text, struct err *err)
{
	for (size_t i = 0; i < sizeof true_words / sizeof true_words[0]; i++) {
		bool is_true = strcasecmp(text, true_words[i]) == 0;

		if (!is_true && strcasecmp(text, false_words[i]) != 0)
			continue;
		*ret = is_true;
		return 0;
	}
	return setting_refuse(setting, text, "a switch", err);
}

/* Digits, after '-' if it has one; *ret_rest is what comes behind them. Too large ones become INT64_MAX. */
static bool
setting_scan_int(const char *text, int64_t *ret, const char **ret_rest)
{
	char *rest;

	if (text[text[0] == '-'] < '0' || text[text[0] == '-'] > '9')
		return false;
	*ret = strtoll(text, &rest, 10);
	*ret_rest = rest;
	return true;
}

static int
setting_parse_int(const struct setting *setting, int64_t *ret, const char *text, struct err *err)
{
	const char *rest;
	int64_t value;

	if (!setting_scan_int(text, &value, &rest) || *rest != '\0')
		return setting_refuse(setting, text, "a whole number", err);
	if ((double)value < setting->min || (double)value > setting->max)
		return setting_refuse_range(setting, text, err);
	*ret = value;
	return 0;
}

static int
setting_parse_size(const struct setting *setting, int64_t *ret, const char *text, struct err *err)
{
	const char *rest;
	int64_t value;

	if (!setting_scan_int(text, &value, &rest))
		return setting_refuse(setting, text, "a size", err);
	for (size_t i = 0; i < sizeof size_suffixes / sizeof size_suffixes[0]; i++) {
		if (strcmp(rest, size_suffixes[i].suffix) != 0)
			continue;
		if (__builtin_mul_overflow(value, size_suffixes[i].factor, &value) ||
			(double)value < setting->min || (double)value > setting->max)
			return setting_refuse_range(setting, text, err);
		*ret = value;
		return 0;
	}
	return setting_refuse(setting, text, "a size", err);
}

static int
setting_parse_number(const struct setting *setting, double *ret, const char *text, struct err *err)
{
	char *rest;
	double value;

	/* strtod() alone would take blanks, hexadecimal, nan and inf. */
	if (text[0] == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0')
		return setting_refuse(setting, text, "a number", err);
	value = strtod(text, &rest);
	if (*rest != '\0')
		return setting_refuse(setting, text, "a number", err);
	if (!(value >= setting->min && value <= setting->max))
		return setting_refuse_range(setting, text, err);
	*ret = value;
	return 0;
}

static void
setting_list_clear(struct config_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct config_list){ 0 };
}

void
setting_list_add(struct config_list *list, const char *item, size_t len)
{
	list->items = alloc_resize(list->items, (list->count + 1) * sizeof list->items[0]);
	list->items[list->count++] = must_alloc(strndup(item, len));
}

void
setting_set_list(const struct setting *setting, struct config *config, struct config_list *list)
{
	struct config_list *slot = setting_slot(setting, config);

	setting_list_clear(slot);
	*slot = *list;
}

static void
setting_parse_list(struct config_list *list, const char *text)
{
	setting_list_clear(list);
	while (*text != '\0') {
		size_t len;

		text += strspn(text, " \t,");
		len = strcspn(text, ",");
		while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
			len--;
		if (len > 0)
			setting_list_add(list, text, len);
		text += len;
		text += strspn(text, " \t");
	}
}

int
setting_parse(const struct setting *setting, struct config *config, const char *text, struct err *err)
{
	void *slot = setting_slot(setting, config);

	switch (setting->type) {
	case SETTING_TYPE_STRING:
		free(*(char **)slot);
		*(char **)slot = alloc_string(text);
		return 0;
	case SETTING_TYPE_LIST:
		setting_parse_list(slot, text);
		return 0;
	case SETTING_TYPE_INT:
		return setting_parse_int(setting, slot, text, err);
	case SETTING_TYPE_SIZE:
		return setting_parse_size(setting, slot, text, err);
	case SETTING_TYPE_NUMBER:
		return setting_parse_number(setting, slot, text, err);
	case SETTING_TYPE_BOOL:
		return setting_parse_bool(setting, slot, text, err);
	}
	return err_set(err, ERR_INTERNAL, "setting of unknown type");
}

void
setting_free(const struct setting *setting, struct config *config)
{
	if (setting->type == SETTING_TYPE_STRING)
		free(*(char **)setting_slot(setting, config));
	else if (setting->type == SETTING_TYPE_LIST)
		setting_list_clear(setting_slot(setting, config));
}

static bool
setting_list_equal(const struct config_list *a, const struct config_list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

bool
setting_equal(const struct setting *setting, const struct config *a, const struct config *b)
{
	const void *left = setting_value(setting, a), *right = setting_value(setting, b);

	switch (setting->type) {
	case SETTING_TYPE_STRING:
		return strcmp(*(char *const *)left, *(char *const *)right) == 0;
	case SETTING_TYPE_LIST:
		return setting_list_equal(left, right);
	case SETTING_TYPE_INT:
	case SETTING_TYPE_SIZE:
		return *(const int64_t *)left == *(const int64_t *)right;
	case SETTING_TYPE_NUMBER:
		return !(*(const double *)left < *(const double *)right) &&
			!(*(const double *)left > *(const double *)right);
	case SETTING_TYPE_BOOL:
		return *(const bool *)left == *(const bool *)right;
	}
	return false;
}

void
setting_describe_range(const struct setting *setting, char *buf, size_t size)
{
	switch (setting->type) {
	case SETTING_TYPE_STRING:
	case SETTING_TYPE_LIST:
		snprintf(buf, size, "%s", "");
		break;
	case SETTING_TYPE_SIZE:
		snprintf(buf, size, "%.15g to %.15g bytes, with K, M, G, Ki, Mi or Gi behind if you like",
			setting->min, setting->max);
		break;
	case SETTING_TYPE_INT:
	case SETTING_TYPE_NUMBER:
		snprintf(buf, size, "%.15g to %.15g", setting->min, setting->max);
		break;
	case SETTING_TYPE_BOOL:
		snprintf(buf, size, "on, off, true, false, yes, no, 1, 0");
		break;
	}
}

static void
setting_print_string(const char *text, FILE *out)
{
	fputc('"', out);
	for (; *text != '\0'; text++) {
		/* "${NAME}" would be expanded when read. */
		if (strchr("\"\\$", *text) != NULL)
			fputc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

static void
setting_print_list(const struct config_list *list, FILE *out)
{
	fputc('{', out);
	for (size_t i = 0; i < list->count; i++) {
		fputs(i > 0 ? ", " : "", out);
		setting_print_string(list->items[i], out);
	}
	fputc('}', out);
}

static void
setting_print_size(int64_t value, FILE *out)
{
	const size_t last = sizeof size_suffixes / sizeof size_suffixes[0] - 1;
	size_t i = last;

	while (i > 0 && (value == 0 || value % size_suffixes[i].factor != 0))
		i--;
	fprintf(out, "%" PRId64 "%s", value / size_suffixes[i].factor, size_suffixes[i].suffix);
}

void
setting_print(const struct setting *setting, const struct config *config, FILE *out)
{
	const void *value = setting_value(setting, config);

	switch (setting->type) {
	case SETTING_TYPE_STRING:
		setting_print_string(*(char *const *)value, out);
		break;
	case SETTING_TYPE_LIST:
		setting_print_list(value, out);
		break;
	case SETTING_TYPE_INT:
		fprintf(out, "%" PRId64, *(const int64_t *)value);
		break;
	case SETTING_TYPE_SIZE:
		setting_print_size(*(const int64_t *)value, out);
		break;
	case SETTING_TYPE_NUMBER:
		fprintf(out, "%.15g", *(const double *)value);
		break;
	case SETTING_TYPE_BOOL:
		fputs(*(const bool *)value ? "on" : "off", out);
		break;
	}
}
