/* config_check.c - rules between settings, paths, and API keys. */
/* SPDX-License-Identifier: MIT */
#include "conf/config_load.h"
#include "base/err.h"
#include "base/file.h"
#include "base/ip_range.h"
#include "base/quantity.h"
#include "conf/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { SUBNET_WIDEST = 12, SUBNET_NARROWEST = 28 };
enum { DISK_MIN = 1 << 20, REDIS_PREFIX_MAX = 64 };
enum { KEY_MIN = 8, KEY_MAX = 256, KEYS_FILE_MAX = 1 << 20 };
enum { SECRET_MIN = 32, SECRET_MAX = 4096 };

/* The longest path of a socket below run_dir; the id stands for its 54 characters. */
#define LONGEST_SOCKET "/sandboxes/123456789012345678901234567890123456789012345678901234/agent.sock"

#define SETTING(name) (&settings[SETTING_INDEX_##name])

enum { FIRST_OPTIONAL = 3 };
static const struct setting *const path_settings[] = {
	SETTING(state_dir),
	SETTING(run_dir),
	SETTING(agent_path),
	SETTING(api_keys_file),
	SETTING(agent_secret_file),
};

static int
check_paths(const struct config *config, const struct config_origin *origin, struct err *err)
{
	const char *const paths[] = { config->state_dir, config->run_dir, config->agent_path, config->api_keys_file,
		config->agent_secret_file };

	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		if (paths[i][0] == '/' || (paths[i][0] == '\0' && i >= FIRST_OPTIONAL))
			continue;
		err_set(err, ERR_INVALID, "'%.100s' is not an absolute path; it must begin with /", paths[i]);
		return config_blame(origin, path_settings[i], err);
	}
	for (size_t i = 0; i < config->local_image_paths.count; i++) {
		const char *path = config->local_image_paths.items[i];

		if (path[0] == '/')
			continue;
		err_set(err, ERR_INVALID, "'%.100s' is not an absolute path; it must begin with /", path);
		return config_blame(origin, SETTING(local_image_paths), err);
	}
	return 0;
}

static int
check_run_dir(const struct config *config, const struct config_origin *origin, struct err *err)
{
	const size_t room = sizeof((struct sockaddr_un *)NULL)->sun_path - sizeof LONGEST_SOCKET;

	if (strlen(config->run_dir) <= room)
		return 0;
	err_set(err, ERR_INVALID, "'%.100s' has %zu characters; at most %zu leave room for the sockets below it",
		config->run_dir, strlen(config->run_dir), room);
	return config_blame(origin, SETTING(run_dir), err);
}

static int
check_words(const struct config *config, const struct config_origin *origin, struct err *err)
{
	enum log_level level;

	if (log_level_parse(config->log_level, &level) < 0) {
		err_set(err, ERR_INVALID, "'%.100s' is no log level; allowed: debug, info, warn, error",
			config->log_level);
		return config_blame(origin, SETTING(log_level), err);
	}
	if (strcmp(config->driver, "local") != 0 && !config_is_kubernetes(config)) {
		err_set(err, ERR_INVALID, "'%.100s' is no driver; allowed: local, kubernetes", config->driver);
		return config_blame(origin, SETTING(driver), err);
	}
	if (strcmp(config->local_runtime, "builtin") != 0 && strcmp(config->local_runtime, "crun") != 0 &&
		strcmp(config->local_runtime, "runc") != 0) {
		err_set(err, ERR_INVALID, "'%.100s' is no runtime for sandboxes; allowed: builtin, crun, runc",
			config->local_runtime);
		return config_blame(origin, SETTING(local_runtime), err);
	}
	if (config->local_runtime_path[0] != '\0' && config->local_runtime_path[0] != '/') {
		err_set(err, ERR_INVALID, "'%.100s' is not an absolute path; it must begin with /",
			config->local_runtime_path);
		return config_blame(origin, SETTING(local_runtime_path), err);
	}
	if (config->service_user[0] == '\0') {
		err_set(err, ERR_INVALID, "is empty; name the user that the service runs as");
		return config_blame(origin, SETTING(service_user), err);
	}
	if (config->listen_host[0] == '\0') {
		err_set(err, ERR_INVALID, "is empty; 0.0.0.0 stands for every interface");
		return config_blame(origin, SETTING(listen_host), err);
	}
	return 0;
}

static int
check_quantities(const struct config *config, const struct config_origin *origin, struct err *err)
{
	int64_t bytes;
	int32_t milli;

	if (quantity_parse_cpu(config->default_cpu, &milli) < 0) {
		err_set(err, ERR_INVALID, "'%.100s' is no amount of cpu; write cores as 2, 0.5 or 500m",
			config->default_cpu);
		return config_blame(origin, SETTING(default_cpu), err);
	}
	if (quantity_parse_memory(config->default_memory, &bytes) < 0) {
		err_set(err, ERR_INVALID, "'%.100s' is no amount of memory; write 512Mi, 2Gi, 1G or bytes",
			config->default_memory);
		return config_blame(origin, SETTING(default_memory), err);
	}
	if (config->sandbox_disk != 0 && config->sandbox_disk < DISK_MIN) {
		err_set(err, ERR_INVALID, "must be at least 1Mi, or 0: no limit");
		return config_blame(origin, SETTING(sandbox_disk), err);
	}
	if (config->max_sandbox_disk != 0 &&
		(config->sandbox_disk == 0 || config->sandbox_disk > config->max_sandbox_disk)) {
		err_set(err, ERR_INVALID, "must be at most max_sandbox_disk");
		return config_blame(origin, SETTING(sandbox_disk), err);
	}
	return 0;
}

/* Addresses without ports; single ones if hosts is true. */
static int
check_ranges(const struct config_list *list, bool hosts, struct err *err)
{
	struct ip_range range;

	for (size_t i = 0; i < list->count; i++) {
		if (ip_range_parse(list->items[i], &range, err) < 0)
			return -1;
		if (range.port != 0)
			return err_set(err, ERR_INVALID, "'%.60s' must have no port", list->items[i]);
		if (hosts && range.prefix != 32)
			return err_set(err, ERR_INVALID, "'%.60s' must be one address", list->items[i]);
	}
	return 0;
}

static int
check_network(const struct config *config, const struct config_origin *origin, struct err *err)
{
	struct ip_range subnet;

	if (check_ranges(&config->network_dns, true, err) < 0)
		return config_blame(origin, SETTING(network_dns), err);
	if (check_ranges(&config->network_blocked_cidrs, false, err) < 0)
		return config_blame(origin, SETTING(network_blocked_cidrs), err);
	if (config->network_subnet[0] == '\0')
		return 0;
	if (ip_range_parse(config->network_subnet, &subnet, err) < 0)
		return config_blame(origin, SETTING(network_subnet), err);
	if (subnet.port == 0 && subnet.prefix >= SUBNET_WIDEST && subnet.prefix <= SUBNET_NARROWEST)
		return 0;
	err_set(err, ERR_INVALID, "'%.60s' must be a range from /%d to /%d, such as 10.200.0.0/16",
		config->network_subnet, SUBNET_WIDEST, SUBNET_NARROWEST);
	return config_blame(origin, SETTING(network_subnet), err);
}

static int
check_walls(const struct config *config, const struct config_origin *origin, struct err *err)
{
	uint64_t set = 0;

	if (walls_add(&config->sandbox_capabilities_add, &set, err) < 0)
		return config_blame(origin, SETTING(sandbox_capabilities_add), err);
	if (walls_drop(&config->sandbox_capabilities_drop, &set, err) < 0)
		return config_blame(origin, SETTING(sandbox_capabilities_drop), err);
	if (walls_check_calls(&config->sandbox_seccomp_allow, err) < 0)
		return config_blame(origin, SETTING(sandbox_seccomp_allow), err);
	return 0;
}

/* What stands in the URL is checked where it is read, by src/redis. */
static int
check_redis(const struct config *config, const struct config_origin *origin, struct err *err)
{
	size_t len = strlen(config->redis_prefix);

	for (size_t i = 0; i < len; i++) {
		if (config->redis_prefix[i] > ' ' && config->redis_prefix[i] < 0x7f)
			continue;
		err_set(err, ERR_INVALID, "holds a blank or a character that is not printable ASCII");
		return config_blame(origin, SETTING(redis_prefix), err);
	}
	if (len > 0 && len <= REDIS_PREFIX_MAX)
		return 0;
	err_set(err, ERR_INVALID, "has %zu characters; allowed: 1 to %d", len, REDIS_PREFIX_MAX);
	return config_blame(origin, SETTING(redis_prefix), err);
}

/* The secret itself never gets into a message. */
static int
read_agent_secret(struct config *config, const struct config_origin *origin, struct err *err)
{
	size_t len;

	if (config->agent_secret_file[0] == '\0')
		return 0;
	if (file_read_at(AT_FDCWD, config->agent_secret_file, SECRET_MAX, &config->agent_secret, &len, err) < 0)
		return config_blame(origin, SETTING(agent_secret_file), err);
	while (len > 0 && strchr(" \t\r\n", config->agent_secret[len - 1]) != NULL)
		config->agent_secret[--len] = '\0';
	if (len >= SECRET_MIN && strlen(config->agent_secret) == len)
		return 0;
	err_set(err, ERR_INVALID,
		"'%.100s' must hold at least %d characters of text: `openssl rand -hex 32` makes some",
		config->agent_secret_file, SECRET_MIN);
	return config_blame(origin, SETTING(agent_secret_file), err);
}

/* The key itself never gets into a message. */
static int
check_key(const char *key, size_t len, struct err *err)
{
	if (len < KEY_MIN || len > KEY_MAX)
		return err_set(
			err, ERR_INVALID, "this key has %zu characters; allowed: %d to %d", len, KEY_MIN, KEY_MAX);
	for (size_t i = 0; i < len; i++)
		if (key[i] <= ' ' || key[i] >= 0x7f || key[i] == ',')
			return err_set(err, ERR_INVALID,
				"character %zu of this key is not allowed; keys are printable ASCII without blanks "
				"and commas",
				i + 1);
	return 0;
}

static int
check_listed_keys(const struct config *config, const struct config_origin *origin, struct err *err)
{
	for (size_t i = 0; i < config->api_keys.count; i++) {
		const char *key = config->api_keys.items[i];

		if (check_key(key, strlen(key), err) == 0)
			continue;
		err_prefix(err, "key number %zu", i + 1);
		return config_blame(origin, SETTING(api_keys), err);
	}
	return 0;
}

static void
keys_warn_if_readable_by_all(const char *path)
{
	struct stat st;

	if (stat(path, &st) == 0 && (st.st_mode & 0007) != 0)
		log_warn("api_keys_file %s can be read or changed by every user of this host; chmod o= it", path);
}

static int
keys_add_lines(struct config *config, const char *text, struct err *err)
{
	for (int number = 1; *text != '\0'; number++) {
		size_t line_len = strcspn(text, "\n");
		const char *key = text + strspn(text, " \t\r");
		size_t len = key < text + line_len ? (size_t)(text + line_len - key) : 0;

		while (len > 0 && strchr(" \t\r", key[len - 1]) != NULL)
			len--;
		if (len > 0 && key[0] != '#') {
			if (check_key(key, len, err) < 0)
				return err_prefix(err, "%s:%d", config->api_keys_file, number);
			setting_list_add(&config->api_keys, key, len);
		}
		text += line_len;
		text += *text == '\n';
	}
	return 0;
}

static int
keys_read_file(struct config *config, const struct config_origin *origin, struct err *err)
{
	AUTO_SECRET char *text = NULL;
	size_t len;

	if (config->api_keys_file[0] == '\0')
		return 0;
	if (file_read_at(AT_FDCWD, config->api_keys_file, KEYS_FILE_MAX, &text, &len, err) < 0)
		return config_blame(origin, SETTING(api_keys_file), err);
	keys_warn_if_readable_by_all(config->api_keys_file);
	if (strlen(text) != len)
		return err_set(err, ERR_INVALID, "%s: holds NUL bytes; it must be text", config->api_keys_file);
	return keys_add_lines(config, config_behind_mark(text), err);
}

static int
check_has_key(const struct config *config, const struct config_origin *origin, struct err *err)
{
	if (!config->auth_enabled || config->api_keys.count > 0)
		return 0;
	err_set(err, ERR_INVALID,
		"is on, but there is no key to accept: set api_keys (or API_KEYS), name a file of keys in "
		"api_keys_file, "
		"or let everybody in with auth_enabled = off");
	return config_blame(origin, SETTING(auth_enabled), err);
}

/* A default never contradicts what somebody chose. */
static int
check_exec_timeouts(struct config *config, const struct config_origin *origin, struct err *err)
{
	size_t index = SETTING_INDEX_default_exec_timeout_seconds;

	if (config->default_exec_timeout_seconds <= config->max_exec_timeout_seconds)
		return 0;
	if (origin->line[index] == 0 && !origin->from_env[index]) {
		config->default_exec_timeout_seconds = config->max_exec_timeout_seconds;
		return 0;
	}
	err_set(err, ERR_INVALID, "%.15g is above max_exec_timeout_seconds, which is %.15g",
		config->default_exec_timeout_seconds, config->max_exec_timeout_seconds);
	return config_blame(origin, SETTING(default_exec_timeout_seconds), err);
}

int
config_check(struct config *config, const struct config_origin *origin, struct err *err)
{
	if (check_paths(config, origin, err) < 0 || check_run_dir(config, origin, err) < 0 ||
		check_words(config, origin, err) < 0 || check_quantities(config, origin, err) < 0 ||
		check_network(config, origin, err) < 0 || check_walls(config, origin, err) < 0 ||
		check_redis(config, origin, err) < 0 || read_agent_secret(config, origin, err) < 0 ||
		check_listed_keys(config, origin, err) < 0 || keys_read_file(config, origin, err) < 0 ||
		check_has_key(config, origin, err) < 0)
		return -1;
	return check_exec_timeouts(config, origin, err);
}
