/* setting.h - settings.def as a table, and one setting's value from and to text. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONF_SETTING_H
#define ORCHARD_CONF_SETTING_H

#include "conf/config.h"

struct err;

enum setting_type {
	SETTING_TYPE_STRING,
	SETTING_TYPE_LIST,
	SETTING_TYPE_INT,
	SETTING_TYPE_SIZE,
	SETTING_TYPE_NUMBER,
	SETTING_TYPE_BOOL
};

struct setting {
	const char *name;
	enum setting_type type;
	const char *default_text;
	double min, max; /* of INT, SIZE and NUMBER; whole numbers here are below 2^53 */
	bool needs_restart;
	const char *meaning;
	size_t offset; /* in struct config */
};

/* One number for each setting, in the order of settings.def. */
enum setting_index {
#define SETTING_STRING(name, ...) SETTING_INDEX_##name,
#define SETTING_LIST(name, ...)   SETTING_INDEX_##name,
#define SETTING_INT(name, ...)    SETTING_INDEX_##name,
#define SETTING_SIZE(name, ...)   SETTING_INDEX_##name,
#define SETTING_NUMBER(name, ...) SETTING_INDEX_##name,
#define SETTING_BOOL(name, ...)   SETTING_INDEX_##name,
#include "conf/settings.def"
	SETTING_COUNT
};

enum { SETTING_NAME_MAX = 64 };

extern const struct setting settings[SETTING_COUNT];

/* NULL when there is no such setting. */
const struct setting *setting_find(const char *name);
/* The setting whose name is at most two letters away, or NULL. */
const struct setting *setting_find_similar(const char *name);
/* The name in capitals. */
void setting_env_name(const struct setting *setting, char ret_name[SETTING_NAME_MAX]);

/*
 * Replaces the setting's value. The message on failure says what the text is not and
 * what is allowed, but not where it stood: the caller knows. Lists are separated by
 * commas; blanks around the items do not count, empty items neither.
 */
int
setting_parse(const struct setting *setting, struct config *config, const char *text, struct err *err) MUSTCHECK;
/* Takes what list holds. */
void setting_set_list(const struct setting *setting, struct config *config, struct config_list *list);
void setting_list_add(struct config_list *list, const char *item, size_t len);

void setting_free(const struct setting *setting, struct config *config);
bool setting_equal(const struct setting *setting, const struct config *a, const struct config *b);
/* "1 to 65535", "on or off", or "" where any text will do. */
void setting_describe_range(const struct setting *setting, char *buf, size_t size);
/* In the syntax of the file. */
void setting_print(const struct setting *setting, const struct config *config, FILE *out);

#endif
