/* contexts.c - reads and writes the configuration file, and decides where the server is. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/contexts.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "orchardctl/command.h"
#include "orchardctl/output/print.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <libgen.h>
#include <stdio.h>

#define DEFAULT_URL "http://localhost:8000"

enum { FILE_MAX = 1 << 20 };

/* A variable that is empty is none. */
static const char *
variable(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static char *
default_path(void)
{
	const char *home;

	if (variable("ORCHARD_CONFIG") != NULL)
		return alloc_string(variable("ORCHARD_CONFIG"));
	if (variable("XDG_CONFIG_HOME") != NULL)
		return alloc_format("%s/orchard/config.json", variable("XDG_CONFIG_HOME"));
	home = variable("HOME");
	return home != NULL ? alloc_format("%s/.config/orchard/config.json", home) : NULL;
}

static int
check_file(const struct contexts *contexts, struct err *err)
{
	struct json_object *all = print_member(contexts->file, "contexts");

	if (!json_object_is_type(contexts->file, json_type_object))
		return err_set(err, ERR_INVALID, "%s: must be a JSON object", contexts->path);
	if (all != NULL && !json_object_is_type(all, json_type_object))
		return err_set(err, ERR_INVALID, "%s: \"contexts\" must be an object", contexts->path);
	if (all == NULL)
		json_object_object_add(contexts->file, "contexts", must_alloc(json_object_new_object()));
	json_object_object_foreach(contexts_all(contexts), name, context)
	{
		if (print_member(context, "server") == NULL)
			return err_set(
				err, ERR_INVALID, "%s: context \"%s\" has no \"server\"", contexts->path, name);
	}
	return 0;
}

int
contexts_load(struct contexts *contexts, struct err *err)
{
	AUTO_SECRET char *text = NULL;
	size_t len;

	*contexts = (struct contexts){ .path = default_path() };
	if (contexts->path != NULL && file_read_at(AT_FDCWD, contexts->path, FILE_MAX, &text, &len, err) == 0) {
		contexts->file = json_parse(text, len, err);
		if (contexts->file == NULL)
			return err_prefix(err, "%s", contexts->path);
	} else if (contexts->path != NULL && err->code != ERR_NOT_FOUND) {
		return -1;
	} else {
		contexts->file = must_alloc(json_object_new_object());
	}
	return check_file(contexts, err);
}

int
contexts_save(const struct contexts *contexts, struct err *err)
{
	AUTO_FREE char *path = NULL;
	const char *text = json_object_to_json_string_ext(
		contexts->file, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
	AUTO_SECRET char *all = alloc_format("%s\n", text);

	if (contexts->path == NULL)
		return err_set(
			err, ERR_INVALID, "there is no place for the configuration: set ORCHARD_CONFIG or HOME");
	path = alloc_string(contexts->path);
	if (strchr(path, '/') != NULL && file_mkdirs(dirname(path), 0700, err) < 0)
		return -1;
	return file_write_atomic_at(AT_FDCWD, contexts->path, 0600, all, strlen(all), true, err);
}

void
contexts_fini(struct contexts *contexts)
{
	free(contexts->path);
	json_object_put(contexts->file);
	*contexts = (struct contexts){ 0 };
}

const char *
contexts_current(const struct contexts *contexts)
{
	const char *name = print_string(contexts->file, "current_context");

	return name[0] != '\0' ? name : NULL;
}

struct json_object *
contexts_all(const struct contexts *contexts)
{
	return print_member(contexts->file, "contexts");
}

struct json_object *
contexts_find(const struct contexts *contexts, const char *name)
{
	struct json_object *context = NULL;

	json_object_object_get_ex(contexts_all(contexts), name, &context);
	return context;
}

int
contexts_check_url(const char *url, struct err *err)
{
	const char *host = strncmp(url, "http://", 7) == 0 ? url + 7
		: strncmp(url, "https://", 8) == 0         ? url + 8
							   : NULL;

	if (host == NULL || host[0] == '\0' || host[0] == '/' || strpbrk(url, " \t\r\n?#") != NULL)
		return err_set(err, ERR_INVALID, "\"%s\" is no URL of a server, such as " DEFAULT_URL, url);
	return 0;
}

/* Without slashes at its end. */
static char *
tidy_url(const char *url)
{
	size_t len = strlen(url);

	while (len > 0 && url[len - 1] == '/')
		len--;
	return alloc_format("%.*s", (int)len, url);
}

static int
find_context(const struct ctl *ctl, const struct contexts *contexts, struct json_object **ret, struct err *err)
{
	const char *name = ctl->context_flag != NULL ? ctl->context_flag : contexts_current(contexts);

	*ret = name != NULL ? contexts_find(contexts, name) : NULL;
	if (name != NULL && *ret == NULL)
		return err_set(err, ERR_INVALID,
			"there is no context \"%s\" in %s\n'orchardctl config get-contexts' "
			"lists them",
			name, contexts->path != NULL ? contexts->path : "the configuration");
	return 0;
}

static char *
add_prefix(char *url)
{
	const char *prefix = variable("SANDBOX_PREFIX");
	AUTO_FREE char *bare = url;
	AUTO_FREE char *all = NULL;

	if (prefix == NULL)
		return STEAL_PTR(bare);
	prefix += strspn(prefix, "/");
	all = alloc_format("%s/%s", bare, prefix);
	return tidy_url(all);
}

static int
resolve_url(struct ctl *ctl, struct json_object *context, struct err *err)
{
	const char *from_env = ctl->context_flag == NULL ? variable("SANDBOX_BASE_URL") : NULL;
	const char *url = ctl->server_flag != NULL ? ctl->server_flag : from_env;

	if (url == NULL && context != NULL) {
		ctl->server.url = tidy_url(print_string(context, "server"));
		return contexts_check_url(ctl->server.url, err);
	}
	if (url == NULL)
		url = DEFAULT_URL;
	ctl->server.url = add_prefix(tidy_url(url));
	return contexts_check_url(ctl->server.url, err);
}

int
contexts_resolve(struct ctl *ctl, struct err *err)
{
	AUTO_CONTEXTS contexts = { 0 };
	AUTO_FREE char *own_url = NULL;
	struct json_object *context;
	const char *key, *ca_file;

	if (contexts_load(&contexts, err) < 0 || find_context(ctl, &contexts, &context, err) < 0)
		return -1;
	if (resolve_url(ctl, context, err) < 0)
		return -1;
	own_url = tidy_url(context != NULL ? print_string(context, "server") : "");
	if (strcmp(own_url, ctl->server.url) != 0)
		context = NULL;
	key = ctl->key_flag;
	if (key == NULL && ctl->context_flag == NULL)
		key = variable("SANDBOX_API_KEY");
	if (key == NULL && context != NULL && print_member(context, "api_key") != NULL)
		key = print_string(context, "api_key");
	if (key != NULL && strpbrk(key, "\r\n") != NULL)
		return err_set(err, ERR_INVALID, "the API key has a line end in it");
	ctl->server.key = key != NULL && key[0] != '\0' ? alloc_string(key) : NULL;
	ca_file = context != NULL ? print_string(context, "ca_file") : "";
	ctl->server.ca_file = ca_file[0] != '\0' ? alloc_string(ca_file) : NULL;
	return 0;
}
