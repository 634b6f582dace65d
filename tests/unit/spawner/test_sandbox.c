/* test_sandbox.c - real sandboxes: they come, are closed to the outside, keep their limits, and go without a trace. */
/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include "base/clock.h"
#include "base/err.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int
set_up(void **state)
{
	static struct bed bed;

	bed_open(&bed);
	bed_start_spawner(&bed);
	*state = &bed;
	return 0;
}

static int
tear_down(void **state)
{
	bed_close(*state);
	return 0;
}

static void
test_sandbox_is_made_runs_and_goes(void **state)
{
	struct bed *bed = *state;
	struct spawn_item item;
	struct bed_box box;
	pid_t pid;

	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	pid = (pid_t)box.made.pid;
	assert_int_equal(kill(pid, 0), 0);
	assert_true(bed_find(bed, box.uid, &item));
	assert_true(item.alive);
	bed_expect(&box, "echo hello", "hello\n");
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	bed_assert_gone(bed, &box, pid);
	assert_false(bed_find(bed, box.uid, &item));
}

/* What the image has is not copied for being looked at. */
static void
test_only_what_the_image_lacks_is_filled_in(void **state)
{
	struct bed *bed = *state;
	struct bed_box box;

	assert_int_equal(run_shell("cd %s && echo of the image > etc/hostname && : > etc/hosts",
				 bed->image + strlen("dir:")),
		0);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	bed_expect(&box, "cat /etc/hostname; cat /etc/hosts | grep -c localhost; cat /etc/resolv.conf",
		"of the image\n2\n# loopback only\n");
	assert_int_equal(
		run_shell("cd %s/state/sandboxes/%s/upper/etc && test \"$(ls | xargs)\" = 'hosts resolv.conf'",
			bed->dir, box.id),
		0);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	assert_int_equal(run_shell("cd %s && rm etc/hostname etc/hosts", bed->image + strlen("dir:")), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sandbox_is_made_runs_and_goes),
		cmocka_unit_test(test_only_what_the_image_lacks_is_filled_in),
	};

	bed_require_root();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
