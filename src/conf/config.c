/* config.c - makes a struct config: defaults, then the file, then the environment, then the checks. */
/* SPDX-License-Identifier: MIT */
#include "conf/config.h"
#include "conf/config_load.h"
#include "base/alloc.h"
#include "base/err.h"

#include <string.h>

int
config_blame(const struct config_origin *origin, const struct setting *setting, struct err *err)
{
	size_t index = (size_t)(setting - settings);
	char name[SETTING_NAME_MAX];

	err->code = ERR_INVALID;
	setting_env_name(setting, name);
	if (origin->from_env[index])
		return err_prefix(err, "environment variable %s", name);
	err_prefix(err, "setting '%s'", setting->name);
	if (origin->line[index] != 0)
		return err_prefix(err, "%s:%d", origin->path, origin->line[index]);
	return -1;
}

static int
config_set_defaults(struct config *config, struct err *err)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (setting_parse(&settings[i], config, settings[i].default_text, err) < 0)
			return err_prefix(err, "default of setting '%s'", settings[i].name);
	return 0;
}

static int
config_read_env(struct config *config, struct config_origin *origin, struct err *err)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		char name[SETTING_NAME_MAX];
		const char *text;

		setting_env_name(&settings[i], name);
		text = getenv(name);
		if (text == NULL)
			continue;
		origin->from_env[i] = true;
		if (setting_parse(&settings[i], config, text, err) < 0)
			return config_blame(origin, &settings[i], err);
	}
	return 0;
}

static int
config_fill(struct config *config, struct err *err)
{
	struct config_origin origin = { .path = config->path };

	if (config_set_defaults(config, err) < 0)
		return -1;
	if (config->path != NULL && config_file_read(config, &origin, err) < 0)
		return -1;
	if (config_read_env(config, &origin, err) < 0)
		return -1;
	return config_check(config, &origin, err);
}

/* Parsing left pieces of the file, keys among them, on the stack below; children would inherit them. */
static void __attribute__((noinline)) config_wipe_stack(void)
{
	char below[64 * 1024];

	explicit_bzero(below, sizeof below);
}

int
config_load(const char *path, struct config **ret_config, struct err *err)
{
	struct config *config = alloc_zero(1, sizeof *config);

	if (path != NULL)
		config->path = alloc_string(path);
	if (config_fill(config, err) < 0) {
		config_free(config);
		return -1;
	}
	config_wipe_stack();
	*ret_config = config;
	return 0;
}

void
config_free(struct config *config)
{
	if (config == NULL)
		return;
	for (size_t i = 0; i < SETTING_COUNT; i++)
		setting_free(&settings[i], config);
	free(config->path);
	cleanup_secret(&config->agent_secret);
	free(config);
}

void
config_forget_keys(const struct config *config)
{
	if (config->agent_secret != NULL)
		explicit_bzero(config->agent_secret, strlen(config->agent_secret));
	for (size_t i = 0; i < config->api_keys.count; i++)
		explicit_bzero(config->api_keys.items[i], strlen(config->api_keys.items[i]));
}

void
config_restart_names(const struct config *old, const struct config *new, char *buf, size_t size)
{
	size_t used = 0;

	if (size > 0)
		buf[0] = '\0';
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		size_t need = strlen(settings[i].name) + (used > 0 ? 2 : 0);

		if (!settings[i].needs_restart || setting_equal(&settings[i], old, new))
			continue;
		if (used + need >= size)
			return;
		snprintf(buf + used, size - used, "%s%s", used > 0 ? ", " : "", settings[i].name);
		used += need;
	}
}

static void
config_print_setting(const struct setting *setting, const struct config *config, FILE *out)
{
	char range[128];

	setting_describe_range(setting, range, sizeof range);
	fprintf(out, "# %s\n#", setting->meaning);
	if (range[0] != '\0')
		fprintf(out, " allowed: %s;", range);
	fprintf(out, " default: %s%s\n", setting->default_text[0] != '\0' ? setting->default_text : "empty",
		setting->needs_restart ? "; a change needs a restart" : "");
	if (setting == &settings[SETTING_INDEX_api_keys]) {
		fprintf(out, "# %s = (%zu keys)\n\n", setting->name, config->api_keys.count);
		return;
	}
	if (setting == &settings[SETTING_INDEX_redis_url] && strchr(config->redis_url, '@') != NULL) {
		fprintf(out, "# %s = (with a password)\n\n", setting->name);
		return;
	}
	fprintf(out, "%s = ", setting->name);
	setting_print(setting, config, out);
	fputs("\n\n", out);
}

void
config_print(const struct config *config, FILE *out)
{
#define SETTING_SECTION(title)    fprintf(out, "# --- %s ---\n\n", title);
#define SETTING_STRING(name, ...) config_print_setting(&settings[SETTING_INDEX_##name], config, out);
#define SETTING_LIST(name, ...)   config_print_setting(&settings[SETTING_INDEX_##name], config, out);
#define SETTING_INT(name, ...)    config_print_setting(&settings[SETTING_INDEX_##name], config, out);
#define SETTING_SIZE(name, ...)   config_print_setting(&settings[SETTING_INDEX_##name], config, out);
#define SETTING_NUMBER(name, ...) config_print_setting(&settings[SETTING_INDEX_##name], config, out);
#define SETTING_BOOL(name, ...)   config_print_setting(&settings[SETTING_INDEX_##name], config, out);
#include "conf/settings.def"
}
