/* test_patch_guard.c - whatever was done meanwhile, the files are as they were, or what was kept is gone. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/guard.h"

#include "agent/patch/names.h"
#include "base/err.h"
#include "base/file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct place {
	char path[64];
	int home;
	struct patch_names names;
	struct guard guard;
};

static const char headers[] = "--- a/f\n--- a/link\n--- a/d/x\n--- a/new/deep/n\n--- a/swap\n--- a/swap/in\n";

static void
put(const char *path, const char *text)
{
	struct err err;

	assert_int_equal(file_write_atomic_at(AT_FDCWD, path, 0640, text, strlen(text), false, &err), 0);
}

static ino_t
inode(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_ino : 0;
}

static int
set_up(void **state)
{
	struct place *place = calloc(1, sizeof *place);

	assert_non_null(place);
	strcpy(place->path, "/tmp/test_patch_guard.XXXXXX");
	assert_non_null(mkdtemp(place->path));
	place->home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(chdir(place->path), 0);
	put("f", "f");
	assert_int_equal(mkdir("d", 0710), 0);
	put("d/x", "x");
	put("swap", "s");
	assert_int_equal(symlink("nowhere", "link"), 0);
	patch_names_read(headers, strlen(headers), &place->names);
	assert_int_equal(place->names.count, 6);
	assert_int_equal(guard_take(&place->guard, &place->names), 0);
	*state = place;
	return 0;
}

static int
tear_down(void **state)
{
	struct place *place = *state;
	struct err err;

	assert_int_equal(fchdir(place->home), 0);
	close(place->home);
	assert_int_equal(file_remove_tree_at(AT_FDCWD, place->path, &err), 0);
	patch_names_fini(&place->names);
	free(place);
	return 0;
}

static void
change_all(void)
{
	put("f", "other");
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(unlink("d/x"), 0);
	assert_int_equal(rmdir("d"), 0);
	assert_int_equal(mkdir("new", 0755), 0);
	assert_int_equal(mkdir("new/deep", 0755), 0);
	put("new/deep/n", "n");
	assert_int_equal(unlink("swap"), 0);
	assert_int_equal(mkdir("swap", 0755), 0);
	put("swap/in", "in");
}

static void
test_roll_back(void **state)
{
	struct place *place = *state;
	ino_t f = inode("f"), x = inode("d/x"), link = inode("link"), swap = inode("swap");
	AUTO_FREE char *dir = strdup(place->guard.dir);
	struct stat st;

	assert_non_null(dir);
	change_all();
	assert_int_equal(guard_roll_back(&place->guard), 0);
	assert_int_equal(inode("f"), f);
	assert_int_equal(inode("d/x"), x);
	assert_int_equal(inode("link"), link);
	assert_int_equal(inode("swap"), swap);
	assert_int_equal(inode("new"), 0);
	assert_int_equal(inode(dir), 0);
	assert_int_equal(stat("d", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0710);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_nlink, 1);
}

static void
test_roll_back_of_a_mode(void **state)
{
	struct place *place = *state;
	struct stat st;

	assert_int_equal(chmod("f", 0777), 0);
	assert_int_equal(guard_roll_back(&place->guard), 0);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void
test_release(void **state)
{
	struct place *place = *state;
	AUTO_FREE char *dir = strdup(place->guard.dir);
	struct stat st;

	assert_non_null(dir);
	change_all();
	guard_release(&place->guard);
	assert_int_equal(inode(dir), 0);
	assert_int_equal(inode("d"), 0);
	assert_int_not_equal(inode("new/deep/n"), 0);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_nlink, 1);
}

static void
test_a_file_that_was_left_out(void **state)
{
	struct place *place = *state;

	assert_null(guard_find_left_out(&place->guard));
	assert_int_equal(inode("new"), 0);
	put("new", "in the way");
	assert_string_equal(guard_find_left_out(&place->guard), "new/deep/n");
	guard_release(&place->guard);
}

static const char *
find_directory(const struct place *place, const char *numstat, size_t len)
{
	struct patch_names targets;
	const char *found;
	static char name[64];

	patch_names_read_numstat(numstat, len, &targets);
	found = guard_find_directory(&place->guard, &targets);
	if (found != NULL)
		found = strncpy(name, found, sizeof name - 1);
	patch_names_fini(&targets);
	return found;
}

/* A file may become a directory, but then something is in it; a name that had no file never does. */
static void
test_directories_that_were_asked_to_be_files(void **state)
{
	static const char all[] = "1\t0\tf\0"
				  "1\t0\tnew/deep/n\0"
				  "0\t1\tswap\0"
				  "1\t0\tswap/in";
	static const char swap[] = "0\t1\tswap", new[] = "1\t0\tnew/deep/n";
	struct place *place = *state;

	assert_null(find_directory(place, all, sizeof all));
	change_all();
	assert_null(find_directory(place, all, sizeof all));
	assert_string_equal(find_directory(place, swap, sizeof swap), "swap");
	assert_int_equal(unlink("new/deep/n"), 0);
	assert_int_equal(mkdir("new/deep/n", 0700), 0);
	assert_string_equal(find_directory(place, new, sizeof new), "new/deep/n");
	assert_int_equal(guard_roll_back(&place->guard), 0);
	assert_int_equal(inode("new"), 0);
}

static void
test_a_directory_comes_back(void **state)
{
	static const char d[] = "0\t1\td";
	struct place *place = *state;
	struct patch_names names;
	struct guard guard;
	struct stat st;

	guard_release(&place->guard);
	patch_names_read("--- a/d\n--- a/d/x\n", 17, &names);
	assert_int_equal(guard_take(&guard, &names), 0);
	place->guard = guard;
	assert_string_equal(find_directory(place, d, sizeof d), "d");
	assert_int_equal(unlink("d/x"), 0);
	assert_int_equal(rmdir("d"), 0);
	assert_string_equal(find_directory(place, d, sizeof d), "d");
	put("d", "a file now");
	assert_null(find_directory(place, d, sizeof d));
	assert_int_equal(guard_roll_back(&place->guard), 0);
	assert_int_not_equal(inode("d/x"), 0);
	assert_int_equal(stat("d", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0710);
	patch_names_fini(&names);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_roll_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_roll_back_of_a_mode, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_release, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_file_that_was_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_directories_that_were_asked_to_be_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_directory_comes_back, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
