/* test_shm.c - the mapping: made whole or not at all, adopted only when understood. */
/* SPDX-License-Identifier: MIT */
#include "ipc/shm.h"
#include "base/err.h"
#include "base/log.h"
#include "ipc/exec_lock.h"
#include "ipc/job_table.h"
#include "ipc/notify.h"
#include "ipc/record_index.h"
#include "ipc/sandbox_table.h"
#include "ipc/scoreboard.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cmocka.h>

static const struct shm_sizes sizes = { .sandboxes = 100, .jobs = 50, .records = 1024 };
static char dir[64], path[128];

static int
make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ipc-shm-XXXXXX");
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof path, "%s/shm", dir);
	return 0;
}

static int
remove_dir(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(dir); /* fails when a temporary file was left behind */
}

static struct shm *
open_shm(const struct shm_sizes *wanted, bool expect_adopted)
{
	struct shm *shm = NULL;
	bool adopted = !expect_adopted;
	struct err err;

	if (shm_open_or_create(path, wanted, &shm, &adopted, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(adopted, expect_adopted);
	return shm;
}

static void
insert(struct shm *shm, const char *id)
{
	struct sandbox_record record = { .status = SANDBOX_READY };
	uint32_t slot;
	struct err err;

	strcpy(record.id, id);
	strcpy(record.uid, id);
	assert_int_equal(sandbox_table_insert(shm_sandboxes(shm), &record, &slot, &err), 0);
}

static bool
knows(struct shm *shm, const char *id)
{
	struct sandbox_record record;

	return sandbox_table_find(shm_sandboxes(shm), id, &record, NULL);
}

static void
test_new_mapping_is_empty_and_private(void **state)
{
	struct shm *shm = open_shm(&sizes, false);
	struct stat st;
	struct proc_info info;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(sandbox_table_count(shm_sandboxes(shm)), 0);
	assert_int_equal(sandbox_table_capacity(shm_sandboxes(shm)), 100);
	assert_int_equal(job_table_count(shm_jobs(shm)), 0);
	assert_false(scoreboard_info(shm_scoreboard(shm), 0, &info));
	shm_close(shm);
}

static void
test_same_sizes_are_adopted_with_data(void **state)
{
	struct shm *shm = open_shm(&sizes, false);
	struct proc_ref ref;
	struct err err;

	(void)state;
	insert(shm, "kept");
	assert_int_equal(scoreboard_claim(shm_scoreboard(shm), PROC_WORKER, &ref, &err), 0);
	shm_close(shm);
	shm = open_shm(&sizes, true);
	assert_true(knows(shm, "kept"));
	insert(shm, "more");
	assert_int_equal(sandbox_table_count(shm_sandboxes(shm)), 2);
	assert_false(scoreboard_is_current(shm_scoreboard(shm), ref));
	shm_close(shm);
}

static void
test_tickets_grow_over_adoption_and_nobody_holds_a_place(void **state)
{
	const struct exec_lock_limits limits = { .running = 10, .per_sandbox = 10 };
	struct shm *shm = open_shm(&sizes, false);
	struct exec_ticket before, after;
	struct exec_lock_stats stats;
	struct notify *notify;
	struct proc_ref ref;
	struct err err;
	bool granted;

	(void)state;
	for (int round = 0; round < 2; round++) {
		struct exec_ticket *ticket = round == 0 ? &before : &after;

		assert_int_equal(notify_open(shm_notify(shm), &notify, &err), 0);
		assert_int_equal(scoreboard_claim(shm_scoreboard(shm), PROC_WORKER, &ref, &err), 0);
		assert_int_equal(exec_lock_acquire(
					 shm_exec_lock(shm), notify, &limits, ref, 3, 0, 0, ticket, &granted, &err),
			0);
		assert_true(granted);
		exec_lock_stats(shm_exec_lock(shm), &stats);
		assert_int_equal(stats.nodes_used, 1);
		assert_int_equal(stats.running, 1);
		notify_close(notify);
		shm_close(shm);
		shm = open_shm(&sizes, true);
	}
	assert_true(after.number > before.number);
	shm_close(shm);
}

static void
test_other_sizes_replace_it(void **state)
{
	struct shm_sizes other = sizes;
	struct shm *shm = open_shm(&sizes, false);

	(void)state;
	insert(shm, "lost");
	shm_close(shm);
	other.sandboxes++;
	shm = open_shm(&other, false);
	assert_false(knows(shm, "lost"));
	shm_close(shm);
}

static void
overwrite(off_t at, const void *data, size_t len)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, data, len, at), len);
	close(fd);
}

static void
test_incomplete_or_foreign_files_are_replaced(void **state)
{
	static const char zeros[4] = { 0 };
	struct shm *shm = open_shm(&sizes, false);
	int fd;

	(void)state;
	insert(shm, "lost");
	shm_close(shm);
	overwrite(0, zeros, sizeof zeros);
	shm = open_shm(&sizes, false);
	assert_false(knows(shm, "lost"));
	shm_close(shm);

	fd = open(path, O_RDWR | O_TRUNC | O_CLOEXEC);
	assert_int_equal(write(fd, "hello", 5), 5);
	close(fd);
	shm_close(open_shm(&sizes, false));
}

static void
test_other_version_and_other_boot_are_replaced(void **state)
{
	static const uint32_t version = 999;
	struct shm *shm;
	char head[256], *boot;

	(void)state;
	shm_close(open_shm(&sizes, false));
	overwrite(8, &version, sizeof version);
	shm = open_shm(&sizes, false);
	shm_close(shm);

	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, head, sizeof head, 0), sizeof head);
	close(fd);
	boot = memchr(head + 32, '-', sizeof head - 32); /* the boot id is a UUID */
	assert_non_null(boot);
	overwrite(boot - head - 8, boot[-8] == 'f' ? "e" : "f", 1);
	shm_close(open_shm(&sizes, false));
}

static void
test_link_is_not_followed(void **state)
{
	struct shm *shm = NULL;
	bool adopted;
	struct err err;

	(void)state;
	assert_int_equal(symlink("/tmp/ipc-elsewhere", path), 0);
	assert_int_equal(shm_open_or_create(path, &sizes, &shm, &adopted, &err), -1);
	assert_null(shm);
}

static void
test_full_file_system_is_no_space_and_names_the_settings(void **state)
{
	const struct shm_sizes large = { .sandboxes = 16384, .jobs = 1000, .records = 1024 };
	struct shm *shm = NULL;
	bool adopted;
	struct err err;
	int rc;

	(void)state;
	if (mount("tmpfs", dir, "tmpfs", 0, "size=500k") < 0)
		skip();
	rc = shm_open_or_create(path, &large, &shm, &adopted, &err);
	unlink(path);
	assert_int_equal(rmdir(path), -1);
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	assert_int_equal(rc, -1);
	assert_int_equal(err.code, ERR_NO_SPACE);
	assert_non_null(strstr(err.msg, "max_sandboxes"));
}

/* The size of the file system at which a mapping fits, page by page from one where it does not. */
static void
test_no_size_of_the_file_system_is_a_signal(void **state)
{
	const struct shm_sizes small = { 64, 64, 1024, 1024, 64 };
	struct shm *shm = open_shm(&small, false);
	struct stat st;
	char options[64];
	bool adopted;
	struct err err;
	int refused = 0, rc = -1;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	shm_close(shm);
	unlink(path);
	for (long pages = st.st_blocks / 8 - 8; rc != 0 && pages < st.st_blocks / 8 + 64; pages++) {
		snprintf(options, sizeof options, "size=%ldk", pages * 4);
		if (mount("tmpfs", dir, "tmpfs", 0, options) < 0)
			skip();
		rc = shm_open_or_create(path, &small, &shm, &adopted, &err);
		refused += rc != 0;
		if (rc == 0)
			shm_close(shm);
		else
			assert_int_equal(err.code, ERR_NO_SPACE);
		assert_int_equal(umount2(dir, MNT_DETACH), 0);
	}
	assert_int_equal(rc, 0);
	assert_true(refused > 0);
}

static int
insert_number(struct shm *shm, int number, struct err *err)
{
	struct sandbox_record record = { .status = SANDBOX_READY };
	uint32_t slot;

	snprintf(record.id, sizeof record.id, "box-%d", number);
	snprintf(record.uid, sizeof record.uid, "uid-%d", number);
	return sandbox_table_insert(shm_sandboxes(shm), &record, &slot, err);
}

static void
test_idle_mapping_is_small_and_grows_with_its_records(void **state)
{
	const struct shm_sizes defaults = { 16384, 10000, 262144, 1000000, 10000 };
	struct shm *shm = open_shm(&defaults, false);
	struct stat idle, used;
	struct err err;

	(void)state;
	assert_int_equal(stat(path, &idle), 0);
	assert_in_range(idle.st_blocks * 512, 1, 5 << 20);
	assert_true(idle.st_size > 100 << 20);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(insert_number(shm, i, &err), 0);
	assert_int_equal(stat(path, &used), 0);
	assert_in_range((used.st_blocks - idle.st_blocks) * 512 / 1000, sizeof(struct sandbox_record), 5 * 1024);
	shm_close(shm);
	shm = open_shm(&defaults, true);
	assert_int_equal(sandbox_table_count(shm_sandboxes(shm)), 1000);
	assert_true(knows(shm, "box-999"));
	assert_int_equal(insert_number(shm, 1000, &err), 0);
	shm_close(shm);
}

/* Fills what is left of the file system; returns the file's descriptor. */
static int
fill_up(const char *name)
{
	static const char zeros[4096];
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof zeros) > 0)
		;
	return fd;
}

static void
test_no_memory_for_one_more_is_an_answer_and_no_signal(void **state)
{
	const struct shm_sizes large = { 16384, 1000, 65536, 65536, 0 };
	struct record_location location = { .segment = 1, .length = 1 };
	const struct record_life life = { .expires_at = 1e18 };
	struct sandbox_record record;
	char filler[160];
	struct shm *shm;
	struct err err;
	int fd, made = 0;

	(void)state;
	if (mount("tmpfs", dir, "tmpfs", 0, "size=4m") < 0)
		skip();
	snprintf(filler, sizeof filler, "%s/filler", dir);
	shm = open_shm(&large, false);
	fd = fill_up(filler);
	while (made < 1000 && insert_number(shm, made, &err) == 0)
		made++;
	assert_int_equal(err.code, ERR_NO_CAPACITY);
	assert_non_null(strstr(err.msg, "run_dir"));
	assert_int_equal(
		record_index_put(shm_index(shm), &(struct record_key){ { 1 } }, &life, &location, &err), -1);
	assert_int_equal(err.code, ERR_BUSY);
	assert_false(sandbox_table_read(shm_sandboxes(shm), 16383, &record)); /* nobody touches what is not there */
	assert_int_equal(ftruncate(fd, 0), 0);
	for (int i = made; i < made + 100; i++)
		assert_int_equal(insert_number(shm, i, &err), 0);
	assert_int_equal(
		record_index_put(shm_index(shm), &(struct record_key){ { 1 } }, &life, &location, &err), 0);
	assert_int_equal(record_index_count(shm_index(shm)), 1);
	assert_int_equal(sandbox_table_count(shm_sandboxes(shm)), made + 100);
	close(fd);
	shm_close(shm);
	unlink(path);
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_new_mapping_is_empty_and_private, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_same_sizes_are_adopted_with_data, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			test_tickets_grow_over_adoption_and_nobody_holds_a_place, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_other_sizes_replace_it, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			test_incomplete_or_foreign_files_are_replaced, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			test_other_version_and_other_boot_are_replaced, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_link_is_not_followed, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			test_full_file_system_is_no_space_and_names_the_settings, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_no_size_of_the_file_system_is_a_signal, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			test_idle_mapping_is_small_and_grows_with_its_records, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			test_no_memory_for_one_more_is_an_answer_and_no_signal, make_dir, remove_dir),
	};

	log_set_level(LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
