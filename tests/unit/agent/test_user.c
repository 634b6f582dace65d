/* test_user.c - USER of an image, against files written here; and the environment made for it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "agent/env.h"
#include "agent/user.h"
#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
			     "broken\n"
			     "bad:x:abc:1::/:\n"
			     "app:x:1000:1001:App,,,:/home/app:/bin/zsh\n"
			     "1234:x:77:78::/n:/bin/sh\n"
			     "bare:x:1002:1002";
static const char group[] = "root:x:0:\nstaff:x:50:app,bare\naudio:x:29:apple,app\nnone:x:xx:app\napp:x:1001:\n";

static char root[] = "/tmp/test-user-XXXXXX";

static void
write_file(const char *name, const char *text)
{
	char *path = alloc_format("%s/etc/%s", root, name);
	struct err err;

	assert_int_equal(file_write_atomic_at(AT_FDCWD, path, 0644, text, strlen(text), false, &err), 0);
	free(path);
}

static int
set_up(void **state)
{
	char *path;

	(void)state;
	assert_non_null(mkdtemp(root));
	path = alloc_format("%s/etc", root);
	assert_int_equal(mkdir(path, 0755), 0);
	free(path);
	write_file("passwd", passwd);
	write_file("group", group);
	return 0;
}

static int
tear_down(void **state)
{
	struct err err;

	(void)state;
	return file_remove_tree_at(AT_FDCWD, root, &err);
}

static void
expect_user(const char *spec, uid_t uid, gid_t gid, size_t groups, const char *home)
{
	struct user user;
	struct err err;

	assert_int_equal(user_find(root, spec, &user, &err), 0);
	assert_int_equal(user.uid, uid);
	assert_int_equal(user.gid, gid);
	assert_int_equal(user.group_count, groups);
	assert_string_equal(user.home, home);
}

static void
test_names_and_numbers_are_found(void **state)
{
	(void)state;
	expect_user("", 0, 0, 0, "/root");
	expect_user("root", 0, 0, 0, "/root");
	expect_user("app", 1000, 1001, 2, "/home/app");
	expect_user("1000", 1000, 1001, 2, "/home/app");
	expect_user("bare", 1002, 1002, 1, "/");
	expect_user("4711", 4711, 0, 0, "/");
	expect_user("1234", 77, 78, 0, "/n");
}

static void
test_an_explicit_group_replaces_all_others(void **state)
{
	(void)state;
	expect_user("app:staff", 1000, 50, 0, "/home/app");
	expect_user("app:4", 1000, 4, 0, "/home/app");
	expect_user("4711:4712", 4711, 4712, 0, "/");
	expect_user("app:", 1000, 1001, 2, "/home/app");
}

static void
test_who_is_not_listed_is_refused(void **state)
{
	static const char *const specs[] = { "nobody", "bad", "app:nogroup", "app:none", "4294967295", "-1",
		"app x", "broken" };
	struct user user;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
		assert_int_equal(user_find(root, specs[i], &user, &err), -1);
}

static void
test_a_fifo_does_not_stop_the_agent(void **state)
{
	char *path = alloc_format("%s/etc/passwd", root);
	struct user user;
	struct err err;

	(void)state;
	assert_int_equal(remove(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(user_find(root, "app", &user, &err), -1);
	assert_int_equal(user_find(root, "", &user, &err), 0);
	assert_string_equal(user.home, "/");
	assert_int_equal(remove(path), 0);
	free(path);
	write_file("passwd", passwd);
}

static void
test_later_variables_win_and_defaults_come_last(void **state)
{
	char first[] = "A=1", second[] = "B=2", third[] = "HOME=/mine";
	char *base[] = { first, second, third, NULL };
	struct json_object *map = json_object_new_object();
	struct user user;
	struct env env;
	struct err err;

	(void)state;
	assert_int_equal(user_find(root, "app", &user, &err), 0);
	json_object_object_add(map, "A", json_object_new_string("l1\nl2 $x"));
	json_object_object_add(map, "AB", json_object_new_string(""));
	env_init(&env);
	env_build(&env, base, map, &user);
	assert_string_equal(env.list[0], "A=l1\nl2 $x");
	assert_string_equal(env_get(&env, "AB"), "");
	assert_string_equal(env_get(&env, "B"), "2");
	assert_string_equal(env_get(&env, "HOME"), "/mine");
	assert_string_equal(env_get(&env, "USER"), "app");
	assert_string_equal(env_get(&env, "SHELL"), "/bin/zsh");
	assert_string_equal(env_get(&env, "PATH"), ENV_DEFAULT_PATH);
	assert_int_equal(env.count, 8);
	assert_null(env.list[env.count]);
	env_fini(&env);
	json_object_put(map);
}

static void
test_the_environment_grows(void **state)
{
	struct env env;

	(void)state;
	env_init(&env);
	for (int i = 0; i < 300; i++) {
		char *name = alloc_format("N%d", i);

		env_set(&env, name, "x");
		free(name);
	}
	assert_int_equal(env.count, 300);
	assert_string_equal(env.list[299], "N299=x");
	assert_null(env.list[300]);
	env_fini(&env);
}

static void
test_names_of_variables(void **state)
{
	(void)state;
	assert_true(env_is_name("A", 1));
	assert_true(env_is_name("BASH_FUNC_ls%%", 14));
	assert_false(env_is_name("", 0));
	assert_false(env_is_name("A=B", 3));
	assert_false(env_is_name("A\0B", 3));
}

static uid_t
cached_uid(struct user_cache *cache, const char *spec)
{
	struct user user;
	struct err err;

	return user_cache_find(cache, root, spec, &user, &err) < 0 ? (uid_t)-1 : user.uid;
}

/* Each change is seen at once, however soon after the other it comes. */
static void
test_the_cache_follows_the_files(void **state)
{
	static struct user_cache cache;
	char text[64];

	(void)state;
	for (int i = 1; i < 200; i++) {
		snprintf(text, sizeof text, "app:x:%03d:1::/:/bin/sh\n", i);
		write_file("passwd", text);
		assert_int_equal(cached_uid(&cache, "app"), i);
		assert_int_equal(cached_uid(&cache, "app"), i);
	}
	write_file("passwd", passwd);
	assert_int_equal(cached_uid(&cache, "app"), 1000);
	assert_int_equal(cached_uid(&cache, "root"), 0);
	assert_int_equal(cached_uid(&cache, "nobody"), (uid_t)-1);
	assert_int_equal(cached_uid(&cache, "app"), 1000);
}

/* What is long unchanged is not read again. */
static void
test_the_cache_is_used(void **state)
{
	static struct user_cache cache;
	struct user user;
	struct err err;

	(void)state;
	cache.valid = true;
	cache.user.uid = 4321;
	memcpy(cache.spec, "ghost", 6);
	/* A root without files has the signature of a zeroed cache. */
	assert_int_equal(user_cache_find(&cache, "/no/such/root", "ghost", &user, &err), 0);
	assert_int_equal(user.uid, 4321);
	assert_int_equal(cached_uid(&cache, "ghost"), (uid_t)-1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_numbers_are_found),
		cmocka_unit_test(test_an_explicit_group_replaces_all_others),
		cmocka_unit_test(test_who_is_not_listed_is_refused),
		cmocka_unit_test(test_the_cache_follows_the_files),
		cmocka_unit_test(test_the_cache_is_used),
		cmocka_unit_test(test_a_fifo_does_not_stop_the_agent),
		cmocka_unit_test(test_later_variables_win_and_defaults_come_last),
		cmocka_unit_test(test_the_environment_grows),
		cmocka_unit_test(test_names_of_variables),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
