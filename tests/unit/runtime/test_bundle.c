/* test_bundle.c - config.json holds every wall that the settings leave standing. */
/* SPDX-License-Identifier: MIT */
#include "runtime/runtime_bundle.h"

#include "base/err.h"
#include "base/json.h"
#include "conf/config.h"
#include "conf/covers.h"
#include "conf/wall_rules.h"
#include "conf/walls.h"

#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct config *
load(const char *name, const char *value)
{
	struct config *config;
	struct err err;

	setenv("API_KEYS", "test-key-of-the-bundle", 1);
	if (name != NULL)
		setenv(name, value, 1);
	assert_int_equal(config_load(NULL, &config, &err), 0);
	if (name != NULL)
		unsetenv(name);
	return config;
}

static struct json_object *
bundle_of(const struct config *config)
{
	static const char *const args[] = { "--flag", NULL };
	struct runtime_bundle bundle = { .config = config,
		.dir = "/run/b",
		.id = "box",
		.first_id = 1000000,
		.ids = 65536,
		.capabilities = walls_default_capabilities(),
		.shm_bytes = 4096,
		.nofile_max = 2048,
		.network = true,
		.program_fd = 9,
		.args = args };

	return runtime_bundle_json(&bundle);
}

/* A member of a member of...; the names end with NULL. */
static struct json_object *
at(struct json_object *object, const char *const *names)
{
	for (; *names != NULL; names++)
		assert_true(json_object_object_get_ex(object, *names, &object));
	return object;
}
#define AT(object, ...) at(object, (const char *const[]){ __VA_ARGS__, NULL })

static bool
has_text(struct json_object *array, const char *text)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		if (strcmp(json_object_get_string(json_object_array_get_idx(array, i)), text) == 0)
			return true;
	}
	return false;
}

static bool
denies(struct json_object *seccomp, const char *call)
{
	struct json_object *rules = AT(seccomp, "syscalls");

	for (size_t i = 0; i < json_object_array_length(rules); i++) {
		if (has_text(AT(json_object_array_get_idx(rules, i), "names"), call))
			return true;
	}
	return false;
}

static int
check_rule(const struct wall_rule *rule, void *arg)
{
	assert_true(denies(arg, rule->call));
	return 0;
}

static void
test_every_rule_is_in_the_bundle(void **state)
{
	struct config *config = load(NULL, NULL);
	AUTO_JSON struct json_object *bundle = bundle_of(config);
	struct json_object *seccomp = AT(bundle, "linux", "seccomp");

	(void)state;
	assert_string_equal(json_object_get_string(AT(seccomp, "defaultAction")), "SCMP_ACT_ALLOW");
	assert_int_equal(wall_rules_each(config, check_rule, seccomp), 0);
	for (size_t i = 0; i < walls_call_count; i++)
		assert_true(denies(seccomp, walls_calls[i].name));
	config_free(config);
}

/* The specification's value of a masked comparison is the mask, valueTwo what must be left. */
static void
test_masks_stand_where_runtimes_look_for_them(void **state)
{
	struct config *config = load(NULL, NULL);
	AUTO_JSON struct json_object *seccomp = runtime_seccomp_json(config);
	struct json_object *rules = AT(seccomp, "syscalls");
	bool seen = false;

	(void)state;
	for (size_t i = 0; i < json_object_array_length(rules); i++) {
		struct json_object *rule = json_object_array_get_idx(rules, i), *first;

		if (!has_text(AT(rule, "names"), "prlimit64"))
			continue;
		first = json_object_array_get_idx(AT(rule, "args"), 0);
		assert_string_equal(json_object_get_string(AT(first, "op")), "SCMP_CMP_MASKED_EQ");
		assert_int_equal(json_object_get_int64(AT(first, "value")), 0xffffffff);
		assert_int_equal(json_object_get_int64(AT(first, "valueTwo")), 1);
		assert_int_equal(json_object_array_length(AT(rule, "args")), 2);
		seen = true;
	}
	assert_true(seen);
	config_free(config);
}

static void
test_settings_take_walls_away(void **state)
{
	struct config *off = load("SANDBOX_SECCOMP", "off"), *some = load("SANDBOX_SECCOMP_ALLOW", "keyctl,socket");
	AUTO_JSON struct json_object *seccomp = runtime_seccomp_json(some);

	(void)state;
	assert_null(runtime_seccomp_json(off));
	assert_false(denies(seccomp, "keyctl"));
	assert_false(denies(seccomp, "socket"));
	assert_true(denies(seccomp, "socketpair"));
	config_free(off);
	config_free(some);
}

static void
check_covers(struct json_object *list, const char *const *paths, bool want)
{
	for (; *paths != NULL; paths++)
		assert_int_equal(has_text(list, *paths), want);
}

static void
test_paths_are_covered_and_the_agents_always(void **state)
{
	struct config *on = load(NULL, NULL), *off = load("SANDBOX_MASK_PATHS", "off");
	AUTO_JSON struct json_object *all = bundle_of(on), *few = bundle_of(off);

	(void)state;
	check_covers(AT(all, "linux", "maskedPaths"), covers_files, true);
	check_covers(AT(all, "linux", "maskedPaths"), covers_dirs, true);
	check_covers(AT(all, "linux", "readonlyPaths"), covers_readonly, true);
	check_covers(AT(few, "linux", "maskedPaths"), covers_files, false);
	check_covers(AT(few, "linux", "readonlyPaths"), covers_readonly, false);
	check_covers(AT(few, "linux", "readonlyPaths"), covers_agent_readonly, true);
	check_covers(AT(few, "linux", "maskedPaths"), covers_agent_files, true);
	config_free(on);
	config_free(off);
}

static void
test_the_process_gets_no_more_than_it_should(void **state)
{
	struct config *config = load(NULL, NULL);
	AUTO_JSON struct json_object *bundle = bundle_of(config);
	struct json_object *process = AT(bundle, "process");
	struct json_object *sets = AT(process, "capabilities");

	(void)state;
	assert_string_equal(
		json_object_get_string(json_object_array_get_idx(AT(process, "args"), 0)), "/proc/self/fd/9");
	assert_true(json_object_get_boolean(AT(process, "noNewPrivileges")));
	assert_int_equal(json_object_array_length(AT(process, "env")), 0);
	assert_true(has_text(AT(sets, "bounding"), "CAP_CHOWN"));
	assert_false(has_text(AT(sets, "bounding"), "CAP_SYS_ADMIN"));
	assert_false(json_object_object_get_ex(sets, "inheritable", NULL));
	assert_false(json_object_object_get_ex(sets, "ambient", NULL));
	assert_int_equal(json_object_array_length(AT(bundle, "linux", "namespaces")), 7);
	config_free(config);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_rule_is_in_the_bundle),
		cmocka_unit_test(test_masks_stand_where_runtimes_look_for_them),
		cmocka_unit_test(test_settings_take_walls_away),
		cmocka_unit_test(test_paths_are_covered_and_the_agents_always),
		cmocka_unit_test(test_the_process_gets_no_more_than_it_should),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
