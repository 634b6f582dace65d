/* test_tree.c - without a cgroup: who belongs to a command, and one pass over /proc for all who ask in a turn. */
/* SPDX-License-Identifier: MIT */
#include "agent/procscan.h"
#include "agent/tree.h"
#include "base/err.h"
#include "base/file.h"
#include "base/id.h"

#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* The pids are above any real one's: what is signalled by mistake is nobody. */
enum { FIRST = 1 << 23, SECOND = FIRST + 100, OTHER = FIRST + 200, TREES = 500 };

struct bed {
	char path[64];
	int proc_fd;
	struct event_base *base;
	struct tree_keeper *keeper;
};

static int
set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof *bed);

	assert_non_null(bed);
	strcpy(bed->path, "/tmp/test_tree.XXXXXX");
	assert_non_null(mkdtemp(bed->path));
	bed->proc_fd = open(bed->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bed->base = event_base_new();
	bed->keeper = tree_keeper_create(bed->base, -1, bed->proc_fd);
	*state = bed;
	return 0;
}

static int
tear_down(void **state)
{
	struct bed *bed = *state;
	struct err err;

	tree_keeper_free(bed->keeper);
	event_base_free(bed->base);
	close(bed->proc_fd);
	assert_int_equal(file_remove_tree_at(AT_FDCWD, bed->path, &err), 0);
	free(bed);
	return 0;
}

static void
put(const struct bed *bed, pid_t pid, const char *name, const char *data, size_t len)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, "%d", (int)pid);
	(void)mkdirat(bed->proc_fd, path, 0755);
	snprintf(path, sizeof path, "%d/%s", (int)pid, name);
	fd = openat(bed->proc_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	close(fd);
}

static void
put_process(const struct bed *bed, pid_t pid, pid_t parent, pid_t session, char state)
{
	char text[128];
	int len = snprintf(text, sizeof text, "%d (a) R 1) %c %d %d %d 0 -1", (int)pid, state, (int)parent,
		(int)session, (int)session);

	put(bed, pid, "stat", text, (size_t)len);
}

static void
put_marker(const struct bed *bed, pid_t pid, const char *job_id)
{
	char text[128];
	int len = snprintf(text, sizeof text, "A=1%cX" PROCSCAN_MARKER "=no%c" PROCSCAN_MARKER "=%s%cB=2", '\0',
		'\0', job_id, '\0');

	put(bed, pid, "environ", text, (size_t)len + 1);
}

static void
begin(const struct bed *bed, struct tree *tree, pid_t leader)
{
	char id[ID_UUID_SIZE];

	id_uuid4(id);
	tree_init(tree, bed->keeper, id);
	tree->leader = leader;
	put_process(bed, leader, getpid(), leader, 'S');
}

static void
turn(const struct bed *bed)
{
	assert_true(event_base_loop(bed->base, EVLOOP_ONCE) >= 0);
}

static void
test_members(void **state)
{
	struct bed *bed = *state;
	struct tree first, second;

	begin(bed, &first, FIRST);
	begin(bed, &second, SECOND);
	put_process(bed, FIRST + 1, FIRST, FIRST, 'S');
	put_process(bed, FIRST + 9, FIRST + 1, FIRST + 9, 'S'); /* a session of its own */
	put_process(bed, FIRST + 2, FIRST + 9, FIRST + 9, 'S'); /* listed before its parent */
	put_process(bed, FIRST + 3, FIRST, FIRST, 'Z');
	put_process(bed, OTHER, getpid(), OTHER, 'S');
	put_marker(bed, OTHER, first.job_id);
	put_process(bed, OTHER + 1, OTHER, OTHER, 'S');
	put_process(bed, OTHER + 2, FIRST - 1, OTHER + 2, 'S'); /* marked, but not an orphan */
	put_marker(bed, OTHER + 2, first.job_id);
	assert_int_equal(tree_count(&first), 6);
	assert_int_equal(tree_count(&second), 1);
	assert_int_equal(tree_signal(&first, SIGTERM), 6);
}

static void
test_one_pass_a_turn(void **state)
{
	struct bed *bed = *state;
	struct tree trees[TREES];

	for (int i = 0; i < TREES; i++)
		begin(bed, &trees[i], FIRST + i);
	assert_int_equal(tree_signal(&trees[0], SIGHUP), 1);
	for (int i = 0; i < TREES; i++)
		put_process(bed, FIRST + TREES + i, FIRST + i, FIRST + i, 'S');
	for (int i = 0; i < TREES; i++)
		assert_int_equal(tree_signal(&trees[i], SIGKILL), 1);
	turn(bed);
	for (int i = 0; i < TREES; i++)
		assert_int_equal(tree_count(&trees[i]), 2);
}

static void
test_who_needs_to_know_looks_anew(void **state)
{
	struct bed *bed = *state;
	struct tree first, second;

	begin(bed, &first, FIRST);
	assert_int_equal(tree_count(&first), 1);
	begin(bed, &second, SECOND);
	assert_int_equal(tree_count(&second), 1); /* begun in the same turn, and not taken for empty */
	put_process(bed, SECOND + 1, SECOND, SECOND, 'S');
	assert_int_equal(tree_kill_rest(&second), 2);
}

static void
test_no_proc(void **state)
{
	struct bed *bed = *state;
	struct tree_keeper *keeper = tree_keeper_create(bed->base, -1, -1);
	struct tree tree;
	char id[ID_UUID_SIZE];

	id_uuid4(id);
	tree_init(&tree, keeper, id);
	assert_int_equal(tree_count(&tree), -1);
	tree.leader = FIRST;
	assert_int_equal(tree_signal(&tree, SIGKILL), -1);
	tree_keeper_free(keeper);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_members, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_pass_a_turn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_needs_to_know_looks_anew, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_proc, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
