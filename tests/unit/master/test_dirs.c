/* test_dirs.c - directories get their owners, and dangerous ones are refused. */
/* SPDX-License-Identifier: MIT */
#include "master/dirs.h"

#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"
#include "master/service_user.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct fixture {
	char dir[64];
	char state_dir[80];
	char run_dir[80];
	struct config config;
	struct service_user user;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	struct err err;

	if (f == NULL || geteuid() != 0)
		return -1;
	strcpy(f->dir, "/tmp/test-dirs-XXXXXX");
	if (mkdtemp(f->dir) == NULL || chmod(f->dir, 0755) < 0 || service_user_find("daemon", &f->user, &err) < 0)
		return -1;
	snprintf(f->state_dir, sizeof f->state_dir, "%s/deep/state", f->dir);
	snprintf(f->run_dir, sizeof f->run_dir, "%s/run", f->dir);
	f->config.state_dir = f->state_dir;
	f->config.run_dir = f->run_dir;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;
	struct err err;
	int rc = file_remove_tree_at(AT_FDCWD, f->dir, &err);

	free(f);
	return rc;
}

static void
assert_dir(const char *top, const char *name, uid_t uid, mode_t mode)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof path, "%s/%s", top, name);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_mode & 07777, mode);
}

static int
make_all(struct fixture *f, struct err *err)
{
	if (dirs_make_top(&f->config, &f->user, err) < 0)
		return -1;
	return dirs_make_below(&f->config, &f->user, err);
}

static void
test_owners_and_modes(void **state)
{
	struct fixture *f = *state;
	struct err err;

	assert_int_equal(make_all(f, &err), 0);
	assert_dir(f->state_dir, ".", 0, 0751);
	assert_dir(f->state_dir, "jobs", f->user.uid, 0700);
	assert_dir(f->state_dir, "images", 0, 0700);
	assert_dir(f->state_dir, "sandboxes", 0, 0700);
	assert_dir(f->state_dir, "trash", 0, 0700);
	assert_dir(f->run_dir, ".", 0, 0755);
	assert_dir(f->run_dir, "sandboxes", 0, 0711);
	assert_int_equal(make_all(f, &err), 0);
}

static void
test_existing_directory_is_opened_no_further_than_needed(void **state)
{
	struct fixture *f = *state;
	struct err err;

	assert_int_equal(mkdir(f->run_dir, 0700), 0);
	assert_int_equal(make_all(f, &err), 0);
	assert_dir(f->run_dir, ".", 0, 0711);
}

static void
test_directory_that_others_can_change_is_refused(void **state)
{
	struct fixture *f = *state;
	struct err err;

	f->config.run_dir = (char[]){ "/tmp" };
	assert_int_equal(dirs_check(&f->config, &err), -1);
	assert_non_null(strstr(err.msg, "/tmp (the setting run_dir)"));
	assert_int_equal(make_all(f, &err), -1);
	assert_non_null(strstr(err.msg, "/tmp (the setting run_dir)"));
}

static void
assert_apart(struct fixture *f, const char *state_dir, const char *run_dir, bool apart)
{
	char state[192], run[192];
	struct err err;

	snprintf(state, sizeof state, "%s%s", f->dir, state_dir);
	snprintf(run, sizeof run, "%s%s", f->dir, run_dir);
	f->config.state_dir = state;
	f->config.run_dir = run;
	assert_int_equal(dirs_check(&f->config, &err), apart ? 0 : -1);
	if (!apart)
		assert_non_null(strstr(err.msg, "in each other's way"));
}

static void
test_directories_in_each_others_way_are_refused(void **state)
{
	struct fixture *f = *state;
	char link_path[80];

	assert_apart(f, "/both", "/both", false);
	assert_apart(f, "/both", "/./both//", false);
	assert_apart(f, "/one", "/one/sandboxes", false);
	assert_apart(f, "/one/trash/run", "/one/trash", true);
	assert_apart(f, "/one", "/one/trash/run", false);
	assert_apart(f, "/one/sandboxes/state", "/one", false);
	assert_apart(f, "/one", "/one/run", true);
	assert_apart(f, "/one", "/one-run", true);
	snprintf(link_path, sizeof link_path, "%s/link", f->dir);
	assert_int_equal(symlink(".", link_path), 0);
	assert_apart(f, "/link", "", false);
}

static void
test_relative_path_is_refused(void **state)
{
	struct fixture *f = *state;
	struct err err;

	f->config.state_dir = (char[]){ "state" };
	assert_int_equal(dirs_check(&f->config, &err), -1);
	assert_non_null(strstr(err.msg, "state_dir must be an absolute path"));
}

static void
test_link_below_ours_is_not_followed(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct err err;

	assert_int_equal(dirs_make_top(&f->config, &f->user, &err), 0);
	snprintf(path, sizeof path, "%s/jobs", f->state_dir);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(dirs_make_below(&f->config, &f->user, &err), -1);
	assert_non_null(strstr(err.msg, "jobs"));
}

static void
test_results_follow_a_new_service_user(void **state)
{
	struct fixture *f = *state;
	char path[128];
	struct stat st;
	struct err err;

	assert_int_equal(make_all(f, &err), 0);
	snprintf(path, sizeof path, "%s/jobs/1.log", f->state_dir);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	snprintf(path, sizeof path, "%s/jobs", f->state_dir);
	assert_int_equal(chown(path, 0, 0), 0);
	assert_int_equal(make_all(f, &err), 0);
	snprintf(path, sizeof path, "%s/jobs/1.log", f->state_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, f->user.uid);
}

/* As `tar x` of root does it, into a directory that stayed. */
static void
test_restored_results_are_the_service_users_again(void **state)
{
	struct fixture *f = *state;
	char path[128], other[128];
	struct stat st;
	struct err err;

	assert_int_equal(make_all(f, &err), 0);
	snprintf(path, sizeof path, "%s/jobs/1.log", f->state_dir);
	snprintf(other, sizeof other, "%s/secret", f->dir);
	close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(make_all(f, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, f->user.uid);
	snprintf(path, sizeof path, "%s/jobs/2.log", f->state_dir);
	assert_int_equal(link(other, path), 0);
	assert_int_equal(make_all(f, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
}

static void
test_place_that_the_service_user_cannot_reach_is_refused(void **state)
{
	struct fixture *f = *state;
	struct err err;

	assert_int_equal(chmod(f->dir, 0700), 0);
	assert_int_equal(make_all(f, &err), -1);
	assert_non_null(strstr(err.msg, "cannot reach"));
	assert_non_null(strstr(err.msg, "chmod o+x"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_owners_and_modes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_existing_directory_is_opened_no_further_than_needed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directory_that_others_can_change_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_directories_in_each_others_way_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_relative_path_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_link_below_ours_is_not_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_results_follow_a_new_service_user, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restored_results_are_the_service_users_again, setup, teardown),
		cmocka_unit_test_setup_teardown(
			test_place_that_the_service_user_cannot_reach_is_refused, setup, teardown),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
