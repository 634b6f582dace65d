/* test_program.c - which program runs a request, and how long texts reach it. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "agent/program.h"
#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <json-c/json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char root[] = "/tmp/test-program-XXXXXX";

static void
install(const char *path, mode_t mode)
{
	char *full = alloc_format("%s%s", root, path);
	struct err err;

	assert_int_equal(file_write_atomic_at(AT_FDCWD, full, mode, "", 0, false, &err), 0);
	assert_int_equal(chmod(full, mode), 0);
	free(full);
}

static void
remove_file(const char *path)
{
	char *full = alloc_format("%s%s", root, path);

	assert_int_equal(unlink(full), 0);
	free(full);
}

static int
set_up(void **state)
{
	char *path;

	(void)state;
	assert_non_null(mkdtemp(root));
	path = alloc_format("%s/bin", root);
	assert_int_equal(mkdir(path, 0755), 0);
	free(path);
	return 0;
}

static int
tear_down(void **state)
{
	struct err err;

	(void)state;
	return file_remove_tree_at(AT_FDCWD, root, &err);
}

static int
prepare(struct json_object *command, bool login, struct program *program, struct err *err)
{
	struct program_request request = {
		.command = command, .login_shell = login, .root = root, .path = "/a::/b", .cwd = "/it's"
	};
	int rc = program_prepare(&request, program, err);

	json_object_put(command);
	return rc;
}

static void
test_the_shell_is_bash_or_sh_or_missing(void **state)
{
	struct program program;
	struct err err;

	(void)state;
	assert_int_equal(prepare(json_object_new_string("x"), false, &program, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.msg, "no shell in image");
	install("/bin/sh", 0755);
	install("/bin/bash", 0644);
	assert_int_equal(prepare(json_object_new_string("x"), false, &program, &err), 0);
	assert_string_equal(program.paths[0], "/bin/sh");
	assert_string_equal(program.argv[0], "sh");
	program_fini(&program);
	install("/bin/bash", 0755);
	assert_int_equal(prepare(json_object_new_string("x"), false, &program, &err), 0);
	assert_string_equal(program.paths[0], "/bin/bash");
	assert_string_equal(program.argv[1], "-c");
	assert_string_equal(program.argv[2], "--");
	assert_string_equal(program.argv[3], "x");
	assert_null(program.argv[4]);
	assert_int_equal(program.script_fd, -1);
	program_fini(&program);
}

static void
expect_script(const struct program *program, const char *text, size_t len)
{
	char *got = alloc_bytes(len + 1);
	struct stat st;

	assert_int_equal(fstat(program->script_fd, &st), 0);
	assert_int_equal(st.st_size, len);
	assert_int_equal(read(program->script_fd, got, len + 1), len);
	assert_memory_equal(got, text, len);
	assert_int_equal(write(program->script_fd, "x", 1), -1);
	free(got);
}

static void
test_a_long_text_is_handed_over_sealed(void **state)
{
	size_t len = PROGRAM_MAX_ARGUMENT + 1;
	char *text = alloc_bytes(len);
	struct program program;
	struct err err;

	(void)state;
	memset(text, 'x', len);
	assert_int_equal(prepare(json_object_new_string_len(text, (int)len - 1), false, &program, &err), 0);
	assert_int_equal(program.script_fd, -1);
	program_fini(&program);
	assert_int_equal(prepare(json_object_new_string_len(text, (int)len), false, &program, &err), 0);
	assert_string_equal(program.argv[1], "-c");
	assert_int_equal(program.script_target, 3);
	assert_false(program.login);
	assert_false(program_is_unread(&program));
	expect_script(&program, text, len);
	program_fini(&program);
	free(text);
}

/* Whether the text was read tells whether the command has begun, also when there is no text. */
static void
test_a_login_shell_can_be_done_without(void **state)
{
	struct program program;
	struct err err;
	char byte;

	(void)state;
	assert_int_equal(prepare(json_object_new_string(""), true, &program, &err), 0);
	assert_true(program.login);
	assert_string_equal(program.argv[1], "-l");
	assert_non_null(strstr(program.argv[4], "cd -- '/it'\\''s'"));
	assert_true(program.script_target > 2);
	assert_true(program_is_unread(&program));
	program_drop_login(&program);
	assert_int_equal(program.script_target, 3);
	assert_string_equal(program.argv[1], "-c");
	assert_null(program.argv[3]);
	expect_script(&program, "", 1);
	assert_false(program_is_unread(&program));
	program_fini(&program);
	assert_int_equal(prepare(json_object_new_string("x"), true, &program, &err), 0);
	assert_int_equal(read(program.script_fd, &byte, 1), 1);
	assert_false(program_is_unread(&program));
	program_fini(&program);
	remove_file("/bin/bash");
	assert_int_equal(prepare(json_object_new_string("x"), true, &program, &err), 0);
	assert_true(program.login);
	assert_true(program.script_target > 2 && program.script_target + 3 < 10);
	program_fini(&program);
	install("/bin/bash", 0755);
}

static struct json_object *
list(const char *first, const char *second)
{
	struct json_object *command = json_object_new_array();

	json_object_array_add(command, json_object_new_string(first));
	json_object_array_add(command, json_object_new_string(second));
	return command;
}

static void
test_a_list_is_searched_in_the_path(void **state)
{
	struct program program;
	struct err err;

	(void)state;
	assert_int_equal(prepare(list("ls", "a b"), false, &program, &err), 0);
	assert_string_equal(program.paths[0], "/a/ls");
	assert_string_equal(program.paths[1], "./ls");
	assert_string_equal(program.paths[2], "/b/ls");
	assert_null(program.paths[3]);
	assert_string_equal(program.argv[0], "ls");
	assert_string_equal(program.argv[1], "a b");
	assert_null(program.argv[2]);
	program_fini(&program);
	assert_int_equal(prepare(list("./ls", ""), true, &program, &err), 0);
	assert_string_equal(program.paths[0], "./ls");
	assert_null(program.paths[1]);
	program_fini(&program);
	assert_int_equal(prepare(list("", ""), false, &program, &err), 0);
	assert_string_equal(program.paths[0], "");
	program_fini(&program);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_shell_is_bash_or_sh_or_missing),
		cmocka_unit_test(test_a_long_text_is_handed_over_sealed),
		cmocka_unit_test(test_a_login_shell_can_be_done_without),
		cmocka_unit_test(test_a_list_is_searched_in_the_path),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
