/* test_config.c - precedence, messages that name the place, rules between settings, printing. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"
#include "conf/setting.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define KEY "api_keys = {\"0123456789abcdef\"}\n"

static char dir[] = "/tmp/test_config.XXXXXX";
static char conf_path[64], keys_path[64];

static void
write_file(const char *path, const char *text)
{
	struct err err;

	if (file_write_atomic_at(AT_FDCWD, path, 0600, text, strlen(text), false, &err) < 0)
		fail_msg("%s", err.msg);
}

static int
set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		char name[SETTING_NAME_MAX];

		setting_env_name(&settings[i], name);
		unsetenv(name);
	}
	return 0;
}

static int
make_dir(void **state)
{
	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(conf_path, sizeof conf_path, "%s/orchard.conf", dir);
	snprintf(keys_path, sizeof keys_path, "%s/keys", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	struct err err;

	(void)state;
	return file_remove_tree_at(AT_FDCWD, dir, &err);
}

static struct config *
load(const char *text)
{
	struct config *config = NULL;
	struct err err;

	write_file(conf_path, text);
	if (config_load(conf_path, &config, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return config;
}

/* Loading fails and the message holds `what`. */
static void
refuse(const char *text, const char *what)
{
	struct config *config = NULL;
	struct err err = { 0 };

	write_file(conf_path, text);
	if (config_load(conf_path, &config, &err) == 0) {
		config_free(config);
		fail_msg("accepted: %s", text);
	}
	assert_int_equal(err.code, ERR_INVALID);
	if (strstr(err.msg, what) == NULL)
		fail_msg("for:\n%s\nexpected: %s\ngot: %s", text, what, err.msg);
}

static void
test_defaults_are_valid_and_in_range(void **state)
{
	struct config *config;

	(void)state;
	config = load(KEY);
	assert_string_equal(config->path, conf_path);
	assert_string_equal(config->listen_host, "127.0.0.1");
	assert_int_equal(config->port, 8000);
	assert_true(config->auth_enabled);
	assert_int_equal(config->max_header_bytes, 32 * 1024);
	assert_int_equal(config->max_body_bytes, 64 * 1024 * 1024);
	assert_int_equal(config->job_store_max_bytes, 4294967296);
	assert_true(config->sandbox_ttl_hours > 1.99 && config->sandbox_ttl_hours < 2.01);
	assert_int_equal(config->api_keys.count, 1);
	assert_string_equal(config->api_keys.items[0], "0123456789abcdef");
	assert_int_equal(config->local_image_paths.count, 0);
	config_free(config);
}

static void
test_values_of_every_kind_are_read(void **state)
{
	struct config *config;

	(void)state;
	config = load("# a comment\n// and another\n/* and\n a third */\n"
		      "port = 1234\n"
		      "listen_host = \"::1\" service_user = nobody\n"
		      "max_body_bytes = 2Ki\n"
		      "max_output_bytes = 3M\n"
		      "kill_grace_seconds = 0.25\n"
		      "block_network_default = OFF\n"
		      "metrics_auth = no\n"
		      "auth_enabled=1\n"
		      "local_image_paths = {/a, \"/b c\",\n/d}\n"
		      "api_keys += {firstkey1, secondkey2}\n");
	assert_int_equal(config->port, 1234);
	assert_string_equal(config->listen_host, "::1");
	assert_string_equal(config->service_user, "nobody");
	assert_int_equal(config->max_body_bytes, 2048);
	assert_int_equal(config->max_output_bytes, 3000000);
	assert_true(config->kill_grace_seconds > 0.2 && config->kill_grace_seconds < 0.3);
	assert_false(config->block_network_default);
	assert_false(config->metrics_auth);
	assert_true(config->auth_enabled);
	assert_int_equal(config->local_image_paths.count, 3);
	assert_string_equal(config->local_image_paths.items[1], "/b c");
	assert_int_equal(config->api_keys.count, 2);
	config_free(config);
}

static const struct {
	const char *text, *what;
} refused[] = {
	{ KEY "port = 99999", ":2: setting 'port': '99999' is not between 1 and 65535" },
	{ KEY "\n\nport = 0", ":4: setting 'port': '0' is not between" },
	{ KEY "port = 12abc", "'12abc' is not a whole number; allowed: 1 to 65535" },
	{ KEY "port = \"\"", "'' is not a whole number" },
	{ KEY "port = \" 1\"", "' 1' is not a whole number" },
	{ KEY "port = \"+1\"", "'+1' is not a whole number" },
	{ KEY "port = +1", ":2: '+' must stand in quotes" },
	{ KEY "listen_host = *", ":2: '*' must stand in quotes" },
	{ "api_keys = {abcdefgh+}", ":1: '+' must stand in quotes" },
	{ KEY "/* one */ /* two */\n# + *\nport = 0", ":4: setting 'port'" },
	{ KEY "/* three\nlines\n */ port = 0", ":4: setting 'port'" },
	{ KEY "\n/* no end\n\n", ":3: this comment does not end" },
	{ KEY "driver = \"/* \\\" # // '\"", "'/* \" # // '' is no driver" },
	{ KEY "port = 0x10", "'0x10' is not a whole number" },
	{ KEY "port = 1.5", "'1.5' is not a whole number" },
	{ KEY "port = 8K", "'8K' is not a whole number" },
	{ KEY "port = 99999999999999999999999", "is not between" },
	{ KEY "port = -1", "'-1' is not between" },
	{ KEY "max_body_bytes = 1Kb", "'1Kb' is not a size; allowed: 1024 to 4294967296 bytes" },
	{ KEY "max_body_bytes = Ki", "'Ki' is not a size" },
	{ KEY "max_body_bytes = 5Gi", "'5Gi' is not between" },
	{ KEY "max_body_bytes = 9223372036854775807Gi", "is not between" },
	{ KEY "max_body_bytes = -1Gi", "is not between" },
	{ KEY "max_body_bytes = 1", "'1' is not between" },
	{ KEY "kill_grace_seconds = nan", "'nan' is not a number; allowed: 0 to 600" },
	{ KEY "kill_grace_seconds = inf", "is not a number" },
	{ KEY "kill_grace_seconds = 0x1", "is not a number" },
	{ KEY "kill_grace_seconds = 1e", "is not a number" },
	{ KEY "kill_grace_seconds = 1e999", "is not between" },
	{ KEY "kill_grace_seconds = -0.1", "is not between" },
	{ KEY "kill_grace_seconds = 600.1", "is not between" },
	{ KEY "metrics_auth = maybe", ":2: setting 'metrics_auth': 'maybe' is not a switch; allowed: on, off" },
	{ KEY "metrics_auth = \"\"", "'' is not a switch" },
	{ KEY "prot = 1", ":2: unknown setting 'prot'; did you mean 'port'?" },
	{ KEY "PORT = 1", ":2: unknown setting 'PORT'; did you mean 'port'?" },
	{ KEY "complete_nonsense = 1", ":2: unknown setting 'complete_nonsense'" },
	{ KEY "port = 1\nport = 1", ":3: setting 'port' stands twice; it is already in line 2" },
	{ KEY "port = 1\n\napi_keys = {a}", ":4: setting 'api_keys' stands twice; it is already in line 1" },
	{ KEY "port = 1\nport = 2 // same line", ":3: setting 'port' stands twice" },
	{ KEY "local_image_paths={/a} local_image_paths={/b}", ":2: setting 'local_image_paths' stands twice" },
	{ KEY "local_image_paths={/a}\nlocal_image_paths={}", "setting 'local_image_paths' stands twice" },
	{ KEY "port = 1 rubbish", ":2: unknown setting 'rubbish'" },
	{ KEY "port 1", ":2: missing equal sign" },
	{ KEY "port = {1}", ":2: unexpected token '{'" },
	{ KEY "listen_host = \"unterminated\n\n", ":2: the text that begins with \" here does not end" },
	{ KEY "listen_host = 'a\\'", ":2: the text that begins with ' here does not end" },
	{ KEY "port =", "premature end of file" },
	{ KEY "network_subnet = \"10.0.0.0/8\"",
		":2: setting 'network_subnet': '10.0.0.0/8' must be a range from /12 to /28" },
	{ KEY "network_subnet = \"10.0.0.0/29\"", "must be a range from /12 to /28" },
	{ KEY "network_subnet = \"10.0.0.0/16:80\"", "must be a range from /12 to /28" },
	{ KEY "network_subnet = \"10.0.0.1/16\"", "write 10.0.0.0/16" },
	{ KEY "network_subnet = \"fd00::/64\"", "is no IPv4 address" },
	{ KEY "network_dns = {\"dns.example\"}", ":2: setting 'network_dns': \"dns.example\" is no IPv4 address" },
	{ KEY "network_dns = {\"10.0.0.0/8\"}", "'10.0.0.0/8' must be one address" },
	{ KEY "network_dns = {\"1.1.1.1:53\"}", "'1.1.1.1:53' must have no port" },
	{ KEY "network_blocked_cidrs = {\"1.0.0.0/8\", \"1.2.3.4:80\"}",
		"setting 'network_blocked_cidrs': '1.2.3.4:80'" },
	{ KEY "driver = docker", "'docker' is no driver; allowed: local, kubernetes" },
	{ KEY "sandbox_capabilities_add = {NET_ADMIN, NET_ADMN}",
		":2: setting 'sandbox_capabilities_add': 'NET_ADMN' is no capability" },
	{ KEY "sandbox_capabilities_add = {ALL}", "'ALL' is no capability" },
	{ KEY "sandbox_capabilities_add = {cap_sys_ptrace}", "commands could change the agent" },
	{ KEY "sandbox_capabilities_drop = {ALL, \"\"}", "sandbox_capabilities_drop': '' is no capability" },
	{ KEY "sandbox_seccomp_allow = {keyctl, getpid}",
		"setting 'sandbox_seccomp_allow': 'getpid' is not among the system calls that are denied" },
	{ KEY "log_level = loud", "'loud' is no log level; allowed: debug, info, warn, error" },
	{ KEY "service_user = \"\"", "setting 'service_user': is empty" },
	{ KEY "listen_host = \"\"", "setting 'listen_host': is empty" },
	{ KEY "state_dir = var/lib", ":2: setting 'state_dir': 'var/lib' is not an absolute path" },
	{ KEY "run_dir = \"\"", "is not an absolute path" },
	{ KEY "agent_path = orchard-agent", "is not an absolute path" },
	{ KEY "api_keys_file = keys", "is not an absolute path" },
	{ KEY "local_image_paths = {/a, b}", "'b' is not an absolute path" },
	{ KEY "run_dir = /12345678901234567890123456789012", "at most 31 leave room" },
	{ "", "setting 'auth_enabled': is on, but there is no key" },
	{ "api_keys = {}", "there is no key to accept: set api_keys" },
	{ "api_keys = {goodkey12, short}", ":1: setting 'api_keys': key number 2: this key has 5 characters" },
	{ "api_keys = {\"with blank\"}", "character 5 of this key" },
	{ "api_keys = {\"with,comma\"}", "character 5 of this key" },
	{ "api_keys = {\"umlaut-\xc3\xa4\"}", "character 8 of this key" },
	{ KEY "default_exec_timeout_seconds = 10\nmax_exec_timeout_seconds = 5",
		":2: setting 'default_exec_timeout_seconds': 10 is above" },
};

static void
test_wrong_files_are_refused_with_place_and_cure(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
		refuse(refused[i].text, refused[i].what);
}

static void
test_faults_name_file_and_line(void **state)
{
	char expected[128];

	(void)state;
	snprintf(expected, sizeof expected, "%s:3: setting 'port'", conf_path);
	refuse(KEY "\nport = 99999\n", expected);
}

static void
test_missing_file_is_told_apart(void **state)
{
	struct config *config = NULL;
	struct err err;

	(void)state;
	assert_int_equal(config_load("/nonexistent/orchard.conf", &config, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_non_null(strstr(err.msg, "/nonexistent/orchard.conf"));
	assert_null(config);
}

static void
test_file_with_nul_bytes_is_refused(void **state)
{
	struct config *config = NULL;
	struct err err;

	(void)state;
	assert_int_equal(
		file_write_atomic_at(AT_FDCWD, conf_path, 0600, "port = 1\n\0port = 2", 18, false, &err), 0);
	assert_int_equal(config_load(conf_path, &config, &err), -1);
	assert_non_null(strstr(err.msg, "NUL"));
}

static void
test_environment_wins_over_file(void **state)
{
	struct config *config;

	(void)state;
	setenv("PORT", "9001", 1);
	setenv("API_KEYS", " firstkey1 , secondkey2,,", 1);
	setenv("DEFAULT_IMAGE", "", 1);
	setenv("AUTH_ENABLED", "True", 1);
	config = load("port = 7\ndefault_image = x\n");
	assert_int_equal(config->port, 9001);
	assert_int_equal(config->api_keys.count, 2);
	assert_string_equal(config->api_keys.items[0], "firstkey1");
	assert_string_equal(config->api_keys.items[1], "secondkey2");
	assert_string_equal(config->default_image, "");
	config_free(config);
}

static void
test_environment_alone_suffices(void **state)
{
	struct config *config = NULL;
	struct err err;

	(void)state;
	setenv("AUTH_ENABLED", "off", 1);
	setenv("MAX_CONCURRENT_EXECS", "400", 1);
	assert_int_equal(config_load(NULL, &config, &err), 0);
	assert_null(config->path);
	assert_int_equal(config->max_concurrent_execs, 400);
	config_free(config);
}

static void
test_wrong_environment_is_named(void **state)
{
	(void)state;
	setenv("MAX_CONCURRENT_EXECS", "many", 1);
	refuse(KEY,
		"environment variable MAX_CONCURRENT_EXECS: 'many' is not a whole number; allowed: 1 to 1000000");
	setenv("MAX_CONCURRENT_EXECS", "", 1);
	refuse(KEY, "environment variable MAX_CONCURRENT_EXECS: ''");
	unsetenv("MAX_CONCURRENT_EXECS");
	setenv("RUN_DIR", "relative", 1);
	refuse(KEY "run_dir = /x", "environment variable RUN_DIR: 'relative' is not an absolute path");
}

static void
test_keys_file_adds_keys(void **state)
{
	struct config *config;
	char text[256];

	(void)state;
	write_file(keys_path, "# comment\n\n  filekey-1  \r\nfilekey-2");
	snprintf(text, sizeof text, KEY "api_keys_file = %s\n", keys_path);
	config = load(text);
	assert_int_equal(config->api_keys.count, 3);
	assert_string_equal(config->api_keys.items[1], "filekey-1");
	assert_string_equal(config->api_keys.items[2], "filekey-2");
	config_free(config);
}

/* The mark before text in UTF-8, and lines that end with CR LF. */
static void
test_files_of_editors_of_another_system_are_read(void **state)
{
	struct config *config;
	char text[256];

	(void)state;
	write_file(keys_path,
		"\xef\xbb\xbf"
		"filekey-1\r\nfilekey-2\r\n");
	snprintf(text, sizeof text,
		"\xef\xbb\xbf"
		"port = 1234\r\napi_keys_file = %s\r\n",
		keys_path);
	config = load(text);
	assert_int_equal(config->port, 1234);
	assert_int_equal(config->api_keys.count, 2);
	assert_string_equal(config->api_keys.items[0], "filekey-1");
	assert_string_equal(config->api_keys.items[1], "filekey-2");
	config_free(config);
}

static void
test_wrong_keys_file_is_refused_without_telling_the_key(void **state)
{
	char text[256], expected[128];
	struct config *config = NULL;
	struct err err;

	(void)state;
	write_file(keys_path, "goodkey-1\nsecret words here\n");
	snprintf(text, sizeof text, "api_keys_file = %s\n", keys_path);
	snprintf(expected, sizeof expected, "%s:2: character 7 of this key", keys_path);
	refuse(text, expected);
	assert_int_equal(config_load(conf_path, &config, &err), -1);
	assert_null(strstr(err.msg, "secret"));
	refuse("api_keys_file = /nonexistent/keys\n",
		":1: setting 'api_keys_file': open /nonexistent/keys: No such file or directory");
}

static void
test_secret_of_agents_is_read_and_must_be_long(void **state)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef";
	struct config *config;
	char text[256];

	(void)state;
	snprintf(text, sizeof text, KEY "driver = kubernetes\nagent_secret_file = %s\n", keys_path);
	write_file(keys_path, "0123456789abcdef0123456789abcdef\n");
	config = load(text);
	assert_string_equal(config->agent_secret, secret);
	assert_true(config_is_kubernetes(config));
	config_forget_keys(config);
	assert_string_equal(config->agent_secret, "");
	config_free(config);
	write_file(keys_path, "0123456789abcdef\n");
	refuse(text, "must hold at least 32 characters");
	refuse(KEY "agent_secret_file = secret\n", "is not an absolute path");
}

static void
test_keys_file_open_to_all_is_warned_about(void **state)
{
	char text[256], line[512] = "";
	struct config *config;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	write_file(keys_path, "goodkey-1\n");
	assert_int_equal(chmod(keys_path, 0644), 0);
	snprintf(text, sizeof text, "api_keys_file = %s\n", keys_path);
	log_set_fd(fds[1]);
	config = load(text);
	log_set_fd(2);
	close(fds[1]);
	assert_true(read(fds[0], line, sizeof line - 1) > 0);
	close(fds[0]);
	assert_non_null(strstr(line, "\"level\":\"warn\""));
	assert_non_null(strstr(line, keys_path));
	assert_null(strstr(line, "goodkey-1"));
	config_free(config);
}

static void
test_a_default_follows_the_maximum_that_was_chosen(void **state)
{
	struct config *config;

	(void)state;
	config = load(KEY "max_exec_timeout_seconds = 60\n");
	assert_true(config->default_exec_timeout_seconds < 60.5);
	config_free(config);
}

static void
test_longest_run_dir_fits(void **state)
{
	(void)state;
	config_free(load(KEY "run_dir = /123456789012345678901234567890\n"));
}

static void
test_restart_names_lists_only_what_a_reload_cannot_change(void **state)
{
	struct config *old, *new;
	char names[256];

	(void)state;
	old = load(KEY);
	new = load(KEY "port = 1\nlog_level = debug\nworkers = 3\nrun_dir = /x\nmax_sandboxes = 7\n");
	config_restart_names(old, new, names, sizeof names);
	assert_string_equal(names, "port, run_dir, max_sandboxes");
	config_restart_names(old, new, names, 8);
	assert_string_equal(names, "port");
	config_restart_names(old, old, names, sizeof names);
	assert_string_equal(names, "");
	config_free(old);
	config_free(new);
}

static void
test_printed_settings_can_be_read_back(void **state)
{
	AUTO_FREE char *text = NULL;
	struct config *config, *again;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	config = load("api_keys = {secretkey1}\nlocal_image_paths = {\"/a \\\"b\\\" \\\\c\", '/${HOME}'}\n"
		      "default_image = \"line\\nbreak\"\n"
		      "max_body_bytes = 5000\n"
		      "max_output_bytes = 3Ki\n"
		      "sandbox_ttl_hours = 0.5\n");
	config_print(config, out);
	fclose(out);
	assert_null(strstr(text, "secretkey1"));
	assert_non_null(strstr(text, "api_keys = (1 keys)"));
	assert_non_null(strstr(text, "port = 8000\n"));
	assert_non_null(strstr(text, "max_output_bytes = 3Ki\n"));
	setenv("API_KEYS", "secretkey1", 1);
	again = load(text);
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!setting_equal(&settings[i], config, again))
			fail_msg("%s changed", settings[i].name);
	config_free(config);
	config_free(again);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_defaults_are_valid_and_in_range, set_up),
		cmocka_unit_test_setup(test_values_of_every_kind_are_read, set_up),
		cmocka_unit_test_setup(test_wrong_files_are_refused_with_place_and_cure, set_up),
		cmocka_unit_test_setup(test_faults_name_file_and_line, set_up),
		cmocka_unit_test_setup(test_missing_file_is_told_apart, set_up),
		cmocka_unit_test_setup(test_file_with_nul_bytes_is_refused, set_up),
		cmocka_unit_test_setup(test_environment_wins_over_file, set_up),
		cmocka_unit_test_setup(test_environment_alone_suffices, set_up),
		cmocka_unit_test_setup(test_wrong_environment_is_named, set_up),
		cmocka_unit_test_setup(test_keys_file_adds_keys, set_up),
		cmocka_unit_test_setup(test_files_of_editors_of_another_system_are_read, set_up),
		cmocka_unit_test_setup(test_wrong_keys_file_is_refused_without_telling_the_key, set_up),
		cmocka_unit_test_setup(test_keys_file_open_to_all_is_warned_about, set_up),
		cmocka_unit_test_setup(test_secret_of_agents_is_read_and_must_be_long, set_up),
		cmocka_unit_test_setup(test_a_default_follows_the_maximum_that_was_chosen, set_up),
		cmocka_unit_test_setup(test_longest_run_dir_fits, set_up),
		cmocka_unit_test_setup(test_restart_names_lists_only_what_a_reload_cannot_change, set_up),
		cmocka_unit_test_setup(test_printed_settings_can_be_read_back, set_up),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
