/* config.c - reads and checks the configuration; unknown fields are for newer agents. */
/* SPDX-License-Identifier: MIT */
#include "agent/config.h"

#include "agent/ambient.h"
#include "agent/env.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	CONFIG_MAX_BYTES = 8 << 20,
	CONFIG_MAX_STRING = 4096,
	CONFIG_REQUEST_MIN = 1 << 20,
	CONFIG_REQUEST_MAX = 256 << 20,
	CONFIG_REPLAY_MAX = 512 << 20,
	CONFIG_TERMINALS = 500,
	CONFIG_TERMINALS_MIN = 16,
	CONFIG_TERMINAL_BYTES = 256 << 10 /* what one costs at worst, without its replay */
};

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

/* Behind what is in the environment by itself, if that counts. */
static char **
config_env(struct json_reader *reader, bool ambient)
{
	struct json_object *list = NULL;
	size_t count = 0, kept = 0;
	char **env = ambient ? ambient_env(&kept) : NULL;

	if (json_object_object_get_ex(reader->body, "env", &list) && list != NULL &&
		!json_object_is_type(list, json_type_array)) {
		json_reader_fault(reader, "env", "type_error", "must be an array of strings");
		list = NULL;
	}
	count = list == NULL ? 0 : json_object_array_length(list);
	env = alloc_resize(env, (kept + count + 1) * sizeof *env);
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(list, i);
		const char *text = json_object_get_string(item);

		if (!json_object_is_type(item, json_type_string) ||
			strlen(text) != (size_t)json_object_get_string_len(item))
			json_reader_fault(reader, "env", "value_error", "item %zu must be a string without NUL", i);
		else if (strchr(text, '=') != NULL && text[0] != '=')
			env[kept++] = alloc_string(text);
	}
	env[kept] = NULL;
	return env;
}

/* Commands find programs in dir, too, unless they have a PATH of their own. */
static void
config_append_path(struct agent_config *config, const char *dir)
{
	char **path = NULL, *longer;
	size_t count = 0;

	for (; config->env[count] != NULL; count++)
		if (strncmp(config->env[count], "PATH=", 5) == 0)
			path = &config->env[count];
	longer = alloc_format("%s:%s", path == NULL ? "PATH=" ENV_DEFAULT_PATH : *path, dir);
	if (path == NULL) {
		config->env = alloc_resize(config->env, (count + 2) * sizeof *config->env);
		config->env[count + 1] = NULL;
		path = &config->env[count];
	} else {
		free(*path);
	}
	*path = longer;
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

static int64_t
config_clamp(int64_t value, int64_t min, int64_t max)
{
	return value < min ? min : value > max ? max : value;
}

/*
 * The agent lives within the sandbox's memory, and its death is the sandbox's: what others may make it hold
 * is a share of that. A request's body is held two and a half times over while it is read.
 */
static void
config_bound_memory(struct json_reader *reader, struct agent_config *config)
{
	int64_t memory = 0;

	json_reader_int(reader, "memory_bytes", 0, INT64_MAX, &memory);
	config->request_max_bytes = CONFIG_REQUEST_MAX;
	if (memory == 0)
		return;
	config->request_max_bytes = config_clamp(memory / 4, CONFIG_REQUEST_MIN, CONFIG_REQUEST_MAX);
	config->journal_bytes = config_clamp(memory / 4, CONFIG_REQUEST_MIN, config->journal_bytes);
}

/* A share of the memory here, too. */
static void
config_terminals(struct json_reader *reader, struct agent_config *config)
{
	const int64_t day = (int64_t)86400 * 1000;
	int64_t memory = 0;

	json_reader_int(reader, "memory_bytes", 0, INT64_MAX, &memory);
	config->terminal_max = CONFIG_TERMINALS;
	config->terminal_replay_bytes = CONFIG_REPLAY_MAX;
	if (memory > 0) {
		config->terminal_max = config_clamp(
			memory / 4 / CONFIG_TERMINAL_BYTES, CONFIG_TERMINALS_MIN, CONFIG_TERMINALS);
		config->terminal_replay_bytes = config_clamp(memory / 8, CONFIG_REQUEST_MIN, CONFIG_REPLAY_MAX);
	}
	config->terminal_input_bytes = config->terminal_replay_bytes / 4;
	config->terminal_keep_ms = 600 * 1000;
	config->terminal_grace_ms = 2000;
	config->terminal_ping_ms = 20 * 1000;
	json_reader_int(reader, "terminal_max", 1, 1 << 16, &config->terminal_max);
	json_reader_int(reader, "terminal_keep_ms", 0, day, &config->terminal_keep_ms);
	json_reader_int(reader, "terminal_grace_ms", 0, day, &config->terminal_grace_ms);
	json_reader_int(reader, "terminal_ping_ms", 1, day, &config->terminal_ping_ms);
}

/* Either the token or its digest. */
static void
config_token(struct json_reader *reader, struct agent_config *config)
{
	const char *token = NULL, *digest = NULL;

	json_reader_string(reader, "token", CONFIG_MAX_STRING, &token);
	json_reader_string(reader, "token_sha256", CONFIG_MAX_STRING, &digest);
	if (token != NULL && token[0] != '\0' && digest == NULL)
		text_sha256_hex(token, strlen(token), config->token_sha256);
	else if (token != NULL || digest == NULL)
		json_reader_fault(
			reader, "token", "value_error", "or token_sha256 must be there, and not be empty");
	else if (strlen(digest) != sizeof config->token_sha256 - 1 ||
		strspn(digest, "0123456789abcdef") != sizeof config->token_sha256 - 1)
		json_reader_fault(reader, "token_sha256", "value_error", "must be 64 digits of lower-case hex");
	else
		memcpy(config->token_sha256, digest, sizeof config->token_sha256);
}

static void
config_identity(struct json_reader *reader, struct agent_config *config)
{
	json_reader_require(reader, "sandbox_id");
	json_reader_require(reader, "sandbox_uid");
	config->sandbox_id = config_string(reader, "sandbox_id", "");
	config->sandbox_uid = config_string(reader, "sandbox_uid", "");
	config_token(reader, config);
	config->listen = config_string(reader, "listen", "");
	if (config->listen[0] != '\0' && strncmp(config->listen, "tcp:", 4) != 0)
		json_reader_fault(reader, "listen", "value_error", "must be tcp:ADDRESS:PORT");
}

static void
config_place(struct json_reader *reader, struct agent_config *config, bool ambient)
{
	const char *append = NULL;

	config->env = config_env(reader, ambient);
	if (json_reader_string(reader, "path_append", CONFIG_MAX_STRING, &append))
		config_append_path(config, append);
	config->user = config_user(reader);
	config->working_dir = config_string(reader, "working_dir", "");
	if (config->working_dir[0] == '/')
		return;
	if (config->working_dir[0] != '\0')
		json_reader_fault(reader, "working_dir", "value_error", "must be an absolute path");
	free(config->working_dir);
	config->working_dir = ambient ? ambient_dir() : alloc_string("/");
}

static void
config_descriptors(struct json_reader *reader, struct agent_config *config, bool ambient)
{
	config->cgroup_fd = config_fd(reader, "cgroup_fd");
	config->oom_fd = config_fd(reader, "oom_fd");
	config->spool_fd = config_fd(reader, "spool_fd");
	config->disk_fd = config_fd(reader, "disk_fd");
	if (ambient && config->oom_fd < 0)
		config->oom_fd = ambient_oom_fd();
}

static void
config_fill(struct json_reader *reader, struct agent_config *config, bool ambient)
{
	config_identity(reader, config);
	config_place(reader, config, ambient);
	config_descriptors(reader, config, ambient);
	config->capabilities = -1;
	json_reader_int(reader, "capabilities", -1, INT64_MAX, &config->capabilities);
	config->in_container = ambient;
	config->deny_clone3 = false;
	json_reader_bool(reader, "deny_clone3", &config->deny_clone3);
	config->journal_jobs = 1024;
	config->journal_bytes = 64 << 20;
	config->spool_total_bytes = 256 << 20;
	json_reader_int(reader, "journal_jobs", 1, 1 << 20, &config->journal_jobs);
	json_reader_int(reader, "journal_bytes", 1, (int64_t)1 << 40, &config->journal_bytes);
	json_reader_int(reader, "spool_total_bytes", 0, (int64_t)1 << 50, &config->spool_total_bytes);
	config_bound_memory(reader, config);
	config_terminals(reader, config);
}

/* Overwrites text. */
static int
config_parse(char *text, size_t len, bool ambient, struct agent_config *ret_config, struct err *err)
{
	AUTO_JSON struct json_object *body = json_parse(text, len, err);
	struct agent_config config = { .cgroup_fd = -1, .oom_fd = -1, .spool_fd = -1, .disk_fd = -1 };
	struct json_reader reader;
	int rc = 0;

	explicit_bzero(text, len);
	if (body == NULL)
		return err_prefix(err, "configuration");
	if (!json_object_is_type(body, json_type_object))
		return err_set(err, ERR_INVALID, "configuration must be a JSON object");
	json_reader_init(&reader, body);
	config_fill(&reader, &config, ambient);
	if (reader.faults != NULL)
		rc = err_set(err, ERR_INVALID, "configuration: %s", json_text(reader.faults, NULL));
	json_reader_fini(&reader);
	if (rc < 0)
		agent_config_fini(&config);
	else
		*ret_config = config;
	return rc;
}

int
agent_config_read(int fd, struct agent_config *ret_config, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len = 0;

	if (config_slurp(fd, &text, &len, err) < 0)
		return -1;
	return config_parse(text, len, false, ret_config, err);
}

int
agent_config_take(struct agent_config *ret_config, struct err *err)
{
	AUTO_FREE char *text = ambient_take_config();

	if (text == NULL)
		return err_set(err, ERR_NOT_FOUND, "no configuration in " AMBIENT_CONFIG);
	return config_parse(text, strlen(text), true, ret_config, err);
}

void
agent_config_fini(struct agent_config *config)
{
	free(config->sandbox_id);
	free(config->sandbox_uid);
	free(config->listen);
	for (char **env = config->env; env != NULL && *env != NULL; env++)
		free(*env);
	free(config->env);
	free(config->user);
	free(config->working_dir);
	*config = (struct agent_config){ .cgroup_fd = -1, .oom_fd = -1 };
}
