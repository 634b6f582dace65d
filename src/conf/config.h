/*
 * config.h - the settings of one generation of processes: read once, never changed.
 *
 * Precedence: environment (the setting's name in capitals) over the file over
 * the default. All settings stand in one table, conf/settings.def; the file is
 * read with libconfuse. A reload makes a new struct config and new processes.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONF_CONFIG_H
#define ORCHARD_CONF_CONFIG_H

#include "base/cleanup.h"
#include "base/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct err;

struct config_list {
	size_t count;
	char **items;
};

struct config {
	char *path; /* the file it came from, or NULL */
	char *agent_secret; /* what agent_secret_file holds; NULL: none */
#define SETTING_STRING(name, ...) char *name;
#define SETTING_LIST(name, ...)   struct config_list name;
#define SETTING_INT(name, ...)    int64_t name;
#define SETTING_SIZE(name, ...)   int64_t name; /* bytes */
#define SETTING_NUMBER(name, ...) double name;
#define SETTING_BOOL(name, ...)   bool name;
#include "conf/settings.def"
};

/*
 * path NULL: environment and defaults only. ERR_INVALID names the file, the line,
 * the setting, what was found and what is allowed; an unknown setting is an error.
 * What belongs together is checked too (auth without a key, run_dir too long for a socket).
 */
int config_load(const char *path, struct config **ret_config, struct err *err) MUSTCHECK;
void config_free(struct config *config);
/* Overwrites the API keys and the secret of tokens in this process's copy: for processes that need none. */
void config_forget_keys(const struct config *config);
/* The driver makes pods in a cluster, nothing on this host. */
static inline bool
config_is_kubernetes(const struct config *config)
{
	return strcmp(config->driver, "kubernetes") == 0;
}

/* Names of settings that differ and that only a restart changes, comma-separated; "" if none. */
void config_restart_names(const struct config *old, const struct config *new, char *buf, size_t size);

/* Every setting with its value, default and meaning, in the file's own syntax; keys are hidden. */
void config_print(const struct config *config, FILE *out);

#endif
