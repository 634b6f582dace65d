/* test_destroyed.c - what is remembered of destroyed sandboxes, for how long, and beyond which restarts. */
/* SPDX-License-Identifier: MIT */
#include "spawn/destroyed.h"

#include "base/cleanup.h"
#include "base/id.h"
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/destroyed-test-XXXXXX";
static int dir_fd = -1;

static int
set_up(void **state)
{
	(void)state;
	strcpy(dir + sizeof dir - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	(void)unlinkat(dir_fd, "destroyed", 0);
	cleanup_fd(&dir_fd);
	return rmdir(dir);
}

static void
test_full_ring_forgets_the_oldest(void **state)
{
	struct destroyed *destroyed = destroyed_open(-1);
	char first[ID_UUID_SIZE], second[ID_UUID_SIZE], uid[ID_UUID_SIZE];

	(void)state;
	id_uuid4(first);
	id_uuid4(second);
	assert_false(destroyed_has(destroyed, first));
	destroyed_add(destroyed, first);
	destroyed_add(destroyed, second);
	for (int i = 2; i < DESTROYED_MAX; i++) {
		id_uuid4(uid);
		destroyed_add(destroyed, uid);
		destroyed_add(destroyed, second); /* takes no place a second time */
	}
	assert_true(destroyed_has(destroyed, first));
	id_uuid4(uid);
	destroyed_add(destroyed, uid);
	assert_false(destroyed_has(destroyed, first));
	assert_true(destroyed_has(destroyed, second));
	assert_true(destroyed_has(destroyed, uid));
	destroyed_close(destroyed);
}

static void
test_later_opener_finds_what_was_added(void **state)
{
	struct destroyed *destroyed = destroyed_open(dir_fd);
	char uid[ID_UUID_SIZE], other[ID_UUID_SIZE];

	(void)state;
	id_uuid4(uid);
	id_uuid4(other);
	destroyed_add(destroyed, uid);
	destroyed_close(destroyed);
	destroyed = destroyed_open(dir_fd);
	assert_true(destroyed_has(destroyed, uid));
	destroyed_add(destroyed, other);
	assert_true(destroyed_has(destroyed, uid));
	assert_true(destroyed_has(destroyed, other));
	destroyed_close(destroyed);
}

static void
test_rubbish_in_the_file_does_no_harm(void **state)
{
	char uid[ID_UUID_SIZE], rubbish[4096];
	struct destroyed *destroyed;
	AUTO_FD fd = openat(dir_fd, "destroyed", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	memset(rubbish, 'x', sizeof rubbish);
	for (int i = 0; i < DESTROYED_MAX * ID_UUID_SIZE / (int)sizeof rubbish + 1; i++)
		assert_int_equal(write(fd, rubbish, sizeof rubbish), sizeof rubbish);
	destroyed = destroyed_open(dir_fd);
	id_uuid4(uid);
	assert_false(destroyed_has(destroyed, uid));
	destroyed_add(destroyed, uid);
	assert_true(destroyed_has(destroyed, uid));
	destroyed_close(destroyed);
}

static void
test_without_a_file_it_is_kept_in_memory(void **state)
{
	struct destroyed *destroyed;
	char uid[ID_UUID_SIZE];

	(void)state;
	assert_int_equal(symlinkat("elsewhere", dir_fd, "destroyed"), 0);
	destroyed = destroyed_open(dir_fd);
	id_uuid4(uid);
	destroyed_add(destroyed, uid);
	assert_true(destroyed_has(destroyed, uid));
	destroyed_close(destroyed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full_ring_forgets_the_oldest),
		cmocka_unit_test_setup_teardown(test_later_opener_finds_what_was_added, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_rubbish_in_the_file_does_no_harm, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_without_a_file_it_is_kept_in_memory, set_up, tear_down),
	};

	log_init("test", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
