/* setting_table.c - settings.def as an array, and how settings are found in it. */
/* SPDX-License-Identifier: MIT */
#include "conf/setting.h"

#include <ctype.h>
#include <string.h>

#define RELOAD  false
#define RESTART true

#define ROW(setting, kind, text, low, high, when, what)                                                            \
	[SETTING_INDEX_##setting] = { .name = #setting,                                                            \
		.type = kind,                                                                                      \
		.default_text = text,                                                                              \
		.min = low,                                                                                        \
		.max = high,                                                                                       \
		.needs_restart = when,                                                                             \
		.meaning = what,                                                                                   \
		.offset = offsetof(struct config, setting) },

const struct setting settings[SETTING_COUNT] = {
#define SETTING_STRING(name, text, when, what)          ROW(name, SETTING_TYPE_STRING, text, 0, 0, when, what)
#define SETTING_LIST(name, text, when, what)            ROW(name, SETTING_TYPE_LIST, text, 0, 0, when, what)
#define SETTING_INT(name, text, low, high, when, what)  ROW(name, SETTING_TYPE_INT, #text, low, high, when, what)
#define SETTING_SIZE(name, text, low, high, when, what) ROW(name, SETTING_TYPE_SIZE, #text, low, high, when, what)
#define SETTING_NUMBER(name, text, low, high, when, what)                                                          \
	ROW(name, SETTING_TYPE_NUMBER, #text, low, high, when, what)
#define SETTING_BOOL(name, text, when, what) ROW(name, SETTING_TYPE_BOOL, #text, 0, 1, when, what)
#include "conf/settings.def"
};

const struct setting *
setting_find(const char *name)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (strcmp(settings[i].name, name) == 0)
			return &settings[i];
	return NULL;
}

static size_t
min3(size_t a, size_t b, size_t c)
{
	size_t low = a < b ? a : b;

	return low < c ? low : c;
}

/* Letters to change, add or drop; both names are shorter than SETTING_NAME_MAX. */
static size_t
setting_distance(const char *a, const char *b)
{
	size_t row[SETTING_NAME_MAX + 1], b_len = strlen(b);

	for (size_t j = 0; j <= b_len; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1] != '\0'; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t swap = diagonal + (tolower((unsigned char)a[i - 1]) != b[j - 1]);

			diagonal = row[j];
			row[j] = min3(row[j] + 1, row[j - 1] + 1, swap);
		}
	}
	return row[b_len];
}

const struct setting *
setting_find_similar(const char *name)
{
	const struct setting *best = NULL;
	size_t best_distance = 3;

	if (strlen(name) >= SETTING_NAME_MAX)
		return NULL;
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		size_t distance = setting_distance(name, settings[i].name);

		if (distance < best_distance) {
			best = &settings[i];
			best_distance = distance;
		}
	}
	return best;
}

void
setting_env_name(const struct setting *setting, char ret_name[SETTING_NAME_MAX])
{
	size_t i;

	for (i = 0; setting->name[i] != '\0' && i < SETTING_NAME_MAX - 1; i++)
		ret_name[i] = (char)toupper((unsigned char)setting->name[i]);
	ret_name[i] = '\0';
}
