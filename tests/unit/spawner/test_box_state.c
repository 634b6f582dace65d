/* test_box_state.c - a record is written twice, in place where it fits, and reads back as it was last written. */
/* SPDX-License-Identifier: MIT */
#include "spawner/box_state.h"

#include "base/err.h"

#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/box-state-test-XXXXXX";
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
	(void)unlinkat(dir_fd, "state.json", 0);
	cleanup_fd(&dir_fd);
	return rmdir(dir); /* fails when anything else was left in it */
}

static struct box_state
new_state(unsigned ranges)
{
	struct box_state state = { .id = "sb-1", .group = "sb-1", .first_id = 1 << 20, .image = "" };

	id_uuid4(state.uid);
	strcpy(state.boot_id, state.uid);
	state.net.address = 0x0ac80001;
	state.net.egress.limited = ranges > 0;
	for (; state.net.egress.count < ranges; state.net.egress.count++)
		state.net.egress.allow[state.net.egress.count] = ip_dest_of_v4(
			&(struct ip_range){ 0xfefefe00, 32, 65535 });
	return state;
}

static void
assert_written(const struct box_state *state)
{
	struct box_state back;
	struct err err;

	assert_int_equal(box_state_write(dir_fd, state, &err), 0);
	assert_int_equal(box_state_read(dir_fd, &back, &err), 0);
	assert_string_equal(back.uid, state->uid);
	assert_int_equal(back.live, state->live);
	assert_int_equal(back.pid, state->pid);
	assert_int_equal(back.pid_start, state->pid_start);
	assert_int_equal(back.net.egress.count, state->net.egress.count);
}

static ino_t
inode(void)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, "state.json", &st, 0), 0);
	return st.st_ino;
}

static void
test_the_longest_numbers_find_room(void **unused)
{
	struct box_state state = new_state(3);
	ino_t before;

	(void)unused;
	assert_written(&state);
	before = inode();
	state.live = true;
	state.pid = INT_MAX;
	state.pid_start = INT64_MAX;
	assert_written(&state);
	assert_int_equal(inode(), before);
	state.live = false;
	state.pid = 0;
	state.pid_start = 0;
	assert_written(&state);
}

static void
test_what_grows_further_is_replaced_whole(void **unused)
{
	struct box_state small = new_state(0), large = new_state(EGRESS_MAX);

	(void)unused;
	assert_written(&small);
	assert_written(&large);
	large.live = true;
	assert_written(&large);
	assert_written(&small);
}

/* A read that waits would hold up the whole spawner. */
static void
test_what_is_no_plain_file_is_not_read(void **unused)
{
	struct box_state state;
	struct err err;

	(void)unused;
	assert_int_equal(mkfifoat(dir_fd, "state.json", 0600), 0);
	assert_int_equal(box_state_read(dir_fd, &state, &err), -1);
	assert_string_equal(err.msg, "state.json is not a plain file");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_the_longest_numbers_find_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_grows_further_is_replaced_whole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_no_plain_file_is_not_read, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
