/* config.c - reads and checks the configuration; unknown fields are for newer agents. */
/* SPDX-License-Identifier: MIT */
#include "agent/config.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_MAX_BYTES = 8 << 20, CONFIG_MAX_STRING = 4096 };

static int
config_slurp(int fd, char **ret_text, size_t *ret_len, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0, size = 0;

	for (;;) {
		ssize_t got;

		if (len == size) {
			size = size == 0 ? 4096 : size * 2;
			text = alloc_resize(text, size);
		}
		got = read(fd, text + len, size - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set_errno(err, errno, "read configuration");
		if (got == 0)
			break;
		len += (size_t)got;
		if (len > CONFIG_MAX_BYTES)
			return err_set(
				err, ERR_TOO_LARGE, "configuration is larger than %d bytes", CONFIG_MAX_BYTES);
	}
	*ret_text = STEAL_PTR(text);
	*ret_len = len;
	return 0;
}

static char **
config_env(struct json_reader *reader)
{
	struct json_object *list = NULL;
	size_t count = 0, kept = 0;
	char **env;

	if (json_object_object_get_ex(reader->body, "env", &list) && list != NULL &&
		!json_object_is_type(list, json_type_array)) {
		json_reader_fault(reader, "env", "type_error", "must be an array of strings");
		list = NULL;
	}
	count = list == NULL ? 0 : json_object_array_length(list);
	env = alloc_zero(count + 1, sizeof *env);
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(list, i);
		const char *text = json_object_get_string(item);

		if (!json_object_is_type(item, json_type_string) ||
			strlen(text) != (size_t)json_object_get_string_len(item))
			json_reader_fault(reader, "env", "value_error", "item %zu must be a string without NUL", i);
		else if (strchr(text, '=') != NULL && text[0] != '=')
			env[kept++] = alloc_string(text);
	}
	return env;
}

static char *
config_string(struct json_reader *reader, const char *field, const char *fallback)
{
	const char *value = fallback;

	json_reader_string(reader, field, CONFIG_MAX_STRING, &value);
	return alloc_string(value);
}

/* An agent that is not root itself can only run commands as what it is. */
static char *
config_user(struct json_reader *reader)
{
	char *user = config_string(reader, "user", "");

	if (user[0] != '\0' || geteuid() == 0)
		return user;
	free(user);
	return alloc_format("%u", (unsigned)geteuid());
}

static int
config_fd(struct json_reader *reader, const char *field)
{
	int64_t fd = -1;

	json_reader_int(reader, field, -1, 1 << 20, &fd);
	if (fd >= 0 && fcntl((int)fd, F_GETFD) < 0) {
		json_reader_fault(reader, field, "value_error", "descriptor %d is not open", (int)fd);
		fd = -1;
	}
	return (int)fd;
}

static void
config_fill(struct json_reader *reader, struct agent_config *config)
{
	static const char *const needed[] = { "sandbox_id", "sandbox_uid", "token" };

	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
		json_reader_require(reader, needed[i]);
	config->sandbox_id = config_string(reader, "sandbox_id", "");
	config->sandbox_uid = config_string(reader, "sandbox_uid", "");
	config->token = config_string(reader, "token", "");
	if (config->token[0] == '\0')
		json_reader_fault(reader, "token", "value_error", "must not be empty");
	config->env = config_env(reader);
	config->user = config_user(reader);
	config->working_dir = config_string(reader, "working_dir", "/");
	if (config->working_dir[0] != '/') {
		if (config->working_dir[0] != '\0')
			json_reader_fault(reader, "working_dir", "value_error", "must be an absolute path");
		free(config->working_dir);
		config->working_dir = alloc_string("/");
	}
	config->cgroup_fd = config_fd(reader, "cgroup_fd");
	config->oom_fd = config_fd(reader, "oom_fd");
	config->journal_jobs = 1024;
	config->journal_bytes = 64 << 20;
	json_reader_int(reader, "journal_jobs", 1, 1 << 20, &config->journal_jobs);
	json_reader_int(reader, "journal_bytes", 1, (int64_t)1 << 40, &config->journal_bytes);
}

int
agent_config_read(int fd, struct agent_config *ret_config, struct err *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_JSON struct json_object *body = NULL;
	struct agent_config config = { .cgroup_fd = -1, .oom_fd = -1 };
	struct json_reader reader;
	size_t len = 0;
	int rc = 0;

	if (config_slurp(fd, &text, &len, err) < 0)
		return -1;
	body = json_parse(text, len, err);
	explicit_bzero(text, len);
	if (body == NULL)
		return err_prefix(err, "configuration");
	if (!json_object_is_type(body, json_type_object))
		return err_set(err, ERR_INVALID, "configuration must be a JSON object");
	json_reader_init(&reader, body);
	config_fill(&reader, &config);
	if (reader.faults != NULL)
		rc = err_set(err, ERR_INVALID, "configuration: %s", json_text(reader.faults, NULL));
	json_reader_fini(&reader);
	if (rc < 0)
		agent_config_fini(&config);
	else
		*ret_config = config;
	return rc;
}

void
agent_config_fini(struct agent_config *config)
{
	free(config->sandbox_id);
	free(config->sandbox_uid);
	if (config->token != NULL)
		explicit_bzero(config->token, strlen(config->token));
	free(config->token);
	for (char **env = config->env; env != NULL && *env != NULL; env++)
		free(*env);
	free(config->env);
	free(config->user);
	free(config->working_dir);
	*config = (struct agent_config){ .cgroup_fd = -1, .oom_fd = -1 };
}
