/* reload.c - a new configuration that fits the server that runs. */
/* SPDX-License-Identifier: MIT */
#include "master/reload.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "conf/setting.h"

#include <stdlib.h>
#include <string.h>

static void
keep_string(char **value, const char *running)
{
	free(*value);
	*value = alloc_string(running != NULL ? running : "");
}

static void
keep_list(const char *name, struct config *next, const struct config_list *running)
{
	struct config_list copy = { 0 };

	for (size_t i = 0; i < running->count; i++)
		setting_list_add(&copy, running->items[i], strlen(running->items[i]));
	setting_set_list(setting_find(name), next, &copy);
}

/* One line for each setting of the table; those that a reload may change expand to nothing. */
static void
keep_physical(struct config *next, const struct config *running)
{
#define KEEP_RELOAD(...)
#define KEEP_RESTART(...)                            __VA_ARGS__;
#define SETTING_STRING(name, def, when, ...)         KEEP_##when(keep_string(&next->name, running->name))
#define SETTING_LIST(name, def, when, ...)           KEEP_##when(keep_list(#name, next, &running->name))
#define SETTING_BOOL(name, def, when, ...)           KEEP_##when(next->name = running->name)
#define SETTING_INT(name, def, lo, hi, when, ...)    KEEP_##when(next->name = running->name)
#define SETTING_SIZE(name, def, lo, hi, when, ...)   KEEP_##when(next->name = running->name)
#define SETTING_NUMBER(name, def, lo, hi, when, ...) KEEP_##when(next->name = running->name)
#include "conf/settings.def"
#undef KEEP_RELOAD
#undef KEEP_RESTART
}

int
reload_config(const char *path, const struct config *running, struct config **ret_config, struct err *err)
{
	struct config *next;
	char names[1024];

	if (config_load(path, &next, err) < 0)
		return -1;
	config_restart_names(running, next, names, sizeof names);
	if (names[0] != '\0')
		log_warn("these settings have changed but keep their old values until a restart: %s", names);
	keep_physical(next, running);
	*ret_config = next;
	return 0;
}
