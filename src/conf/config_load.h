/* config_load.h - what the parts of loading share: where each value came from. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONF_CONFIG_LOAD_H
#define ORCHARD_CONF_CONFIG_LOAD_H

#include "conf/setting.h"

struct config_origin {
	const char *path; /* of the file; borrowed */
	int line[SETTING_COUNT]; /* 0: not in the file */
	bool from_env[SETTING_COUNT];
};

/* Puts where the value came from before the message; keeps ERR_INVALID; returns -1. */
int config_blame(const struct config_origin *origin, const struct setting *setting, struct err *err);

/* Reads the file named by origin->path. */
int config_file_read(struct config *config, struct config_origin *origin, struct err *err) MUSTCHECK;

/* Refuses what libconfuse would misread, and turns comments into blanks. */
int config_syntax_check(char *text, const char *path, struct err *err) MUSTCHECK;

/* What one setting alone cannot know; also reads api_keys_file. */
int config_check(struct config *config, const struct config_origin *origin, struct err *err) MUSTCHECK;

/* Behind the mark that some editors put before text in UTF-8. */
char *config_behind_mark(char *text);

#endif
