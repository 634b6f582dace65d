/*
 * config_file.c - the file's syntax, by libconfuse; all values come out as text and
 * are checked by setting.c, so that a wrong value reads the same from the file and
 * from the environment.
 */
/* SPDX-License-Identifier: MIT */
#include "conf/config_load.h"
#include "base/err.h"
#include "base/file.h"

#include <confuse.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

enum { CONFIG_FILE_MAX = 1 << 20 };

/*
 * libconfuse hands no pointer through to its callbacks. Set only while
 * config_file_read() runs, in a process without threads.
 */
static struct {
	struct config_origin *origin;
	struct err *err; /* holds the first fault; code ERR_NONE until then */
} parse;

static int file_fault(const cfg_t *cfg, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int
file_fault(const cfg_t *cfg, const char *fmt, ...)
{
	char what[sizeof parse.err->msg];
	va_list args;

	/* What comes after the first fault is mostly its echo. */
	if (parse.err->code != ERR_NONE)
		return -1;
	va_start(args, fmt);
	vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	return err_set(parse.err, ERR_INVALID, "%s:%d: %s", parse.origin->path, cfg->line, what);
}

static void
file_unknown(const cfg_t *cfg, const char *name)
{
	const struct setting *similar = setting_find_similar(name);

	if (similar != NULL)
		file_fault(cfg, "unknown setting '%s'; did you mean '%s'?", name, similar->name);
	else
		file_fault(cfg, "unknown setting '%s'", name);
}

static void __attribute__((format(printf, 2, 0))) file_on_error(cfg_t *cfg, const char *fmt, va_list args)
{
	static const char unknown[] = "no such option '";
	char what[256], *quote;

	vsnprintf(what, sizeof what, fmt, args);
	quote = strrchr(what, '\'');
	if (strncmp(what, unknown, sizeof unknown - 1) != 0 || quote == NULL) {
		file_fault(cfg, "%s; settings are written as: name = value", what);
		return;
	}
	*quote = '\0';
	file_unknown(cfg, what + sizeof unknown - 1);
}

static int
file_fault_twice(const cfg_t *cfg, const struct setting *setting)
{
	return file_fault(cfg, "setting '%s' stands twice; it is already in line %d", setting->name,
		parse.origin->line[setting - settings]);
}

/* Called for each value, of a list for each item; the first one begins an assignment. */
static int
file_on_value(cfg_t *cfg, cfg_opt_t *opt, const char *value, void *result)
{
	const struct setting *setting = setting_find(opt->name);
	int *line = &parse.origin->line[setting - settings];

	if (cfg_opt_size(opt) == 1 && *line != 0)
		return file_fault_twice(cfg, setting);
	if (*line == 0)
		*line = cfg->line;
	*(const char **)result = value;
	return 0;
}

static int
file_take(cfg_t *cfg, const struct setting *setting, struct config *config, const struct config_origin *origin,
	struct err *err)
{
	struct config_list list = { 0 };

	if (setting->type != SETTING_TYPE_LIST) {
		if (setting_parse(setting, config, cfg_getstr(cfg, setting->name), err) == 0)
			return 0;
		return config_blame(origin, setting, err);
	}
	/* A second assignment, of no items, took away those of the first. */
	if (cfg_size(cfg, setting->name) == 0)
		return file_fault_twice(cfg, setting);
	for (unsigned i = 0; i < cfg_size(cfg, setting->name); i++) {
		const char *item = cfg_getnstr(cfg, setting->name, i);

		setting_list_add(&list, item, strlen(item));
	}
	setting_set_list(setting, config, &list);
	return 0;
}

static int
file_take_all(cfg_t *cfg, struct config *config, const struct config_origin *origin, struct err *err)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (origin->line[i] != 0 && file_take(cfg, &settings[i], config, origin, err) < 0)
			return -1;
	return 0;
}

static cfg_t *
file_cfg_new(void)
{
	cfg_opt_t opts[SETTING_COUNT + 1];
	cfg_t *cfg;

	for (size_t i = 0; i < SETTING_COUNT; i++)
		opts[i] = settings[i].type == SETTING_TYPE_LIST
			? (cfg_opt_t)CFG_STR_LIST_CB(settings[i].name, NULL, CFGF_NODEFAULT, file_on_value)
			: (cfg_opt_t)CFG_STR_CB(settings[i].name, NULL, CFGF_NODEFAULT, file_on_value);
	opts[SETTING_COUNT] = (cfg_opt_t)CFG_END();
	cfg = cfg_init(opts, CFGF_NONE);
	if (cfg == NULL)
		abort();
	cfg_set_error_function(cfg, file_on_error);
	return cfg;
}

char *
config_behind_mark(char *text)
{
	static const char mark[] = "\xef\xbb\xbf";

	return strncmp(text, mark, sizeof mark - 1) == 0 ? text + sizeof mark - 1 : text;
}

static int
file_read_text(const char *path, char **ret_text, struct err *err)
{
	AUTO_SECRET char *text = NULL;
	size_t len;

	if (file_read_at(AT_FDCWD, path, CONFIG_FILE_MAX, &text, &len, err) < 0)
		return err_prefix(err, "configuration file");
	if (strlen(text) != len)
		return err_set(err, ERR_INVALID, "configuration file %s: holds NUL bytes; it must be text", path);
	*ret_text = STEAL_PTR(text);
	return 0;
}

int
config_file_read(struct config *config, struct config_origin *origin, struct err *err)
{
	AUTO_SECRET char *whole = NULL;
	char *text;
	cfg_t *cfg;
	int rc;

	if (file_read_text(origin->path, &whole, err) < 0)
		return -1;
	text = config_behind_mark(whole);
	if (config_syntax_check(text, origin->path, err) < 0)
		return -1;
	if (text[strspn(text, " \t\r\n")] == '\0')
		return 0;
	cfg = file_cfg_new();
	err->code = ERR_NONE;
	parse.origin = origin;
	parse.err = err;
	rc = cfg_parse_buf(cfg, text);
	if (rc != CFG_SUCCESS)
		/* Each fault has been reported by now; this is for one that was not. */
		rc = file_fault(cfg, "cannot be understood");
	else
		rc = file_take_all(cfg, config, origin, err);
	parse.origin = NULL;
	parse.err = NULL;
	cfg_free(cfg);
	return rc;
}
