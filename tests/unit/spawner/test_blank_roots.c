/* test_blank_roots.c - roots made ahead: right ones are used, wrong ones thrown away, and none is left. */
/* SPDX-License-Identifier: MIT */
#include "kids.h"

#include "base/err.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TRIES = 20 };

/* One blank: so it is known which the next create is made of. */
static int
set_up(void **state)
{
	static struct bed bed;

	bed_open(&bed);
	bed_set(&bed, "SANDBOX_BLANKS", "1");
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

/* One like the bed's, told from it by a file. */
static void
make_image(const struct bed *bed, const char *name, const char *file)
{
	assert_int_equal(
		run_shell("cd %s && rm -rf %s && cp -a image %s && touch %s/%s", bed->dir, name, name, name, file),
		0);
}

static int
try_make(struct bed *bed, const char *image, struct bed_box *box)
{
	struct spawn_create create;

	kids_await_blanks(bed, 1);
	bed_fill_create(bed, &create, box);
	snprintf(create.image, sizeof create.image, "dir:%s/%s", bed->dir, image);
	return bed_create(bed, &create, &box->made);
}

/* Of the blank: one that its helper had not finished when the create came is still there for the next. */
static void
make(struct bed *bed, const char *image, struct bed_box *box)
{
	pid_t kids[KIDS_MAX];

	for (int i = 0; i < TRIES; i++) {
		kids_await_blanks(bed, 1);
		assert_int_equal(kids_find(bed, "orchard-blank", kids), 1);
		assert_int_equal(try_make(bed, image, box), ERR_NONE);
		if ((pid_t)box->made.pid == kids[0])
			return;
		assert_int_equal(bed_destroy(bed, box), ERR_NONE);
	}
	fail_msg("no blank was used");
}

/* Its own image and mounts, whatever its blank stood on, and nothing of another sandbox; it leaves something. */
static void
expect(const struct bed_box *box, const char *file)
{
	char text[256];

	snprintf(text, sizeof text, "/in_%.16s\n1\n/proc/self/comm\n%.63s\nhere\n", file, box->id);
	bed_expect(box,
		"ls /in_*; mount | grep -c ' on / '; ls /proc/self/comm; cat /etc/hostname; test -e /left && echo "
		"left; "
		"echo here >/left; cat /left",
		text);
}

static void
test_a_root_made_ahead_is_for_its_image_alone(void **state)
{
	static const char images[] = "aaababbb";
	enum { STEPS = sizeof images - 1 };
	struct bed *bed = *state;
	struct bed_box boxes[STEPS];
	struct bed_box later;

	make_image(bed, "a", "in_a");
	make_image(bed, "b", "in_b");
	for (int i = 0; i < STEPS; i++) {
		const char image[] = { images[i], '\0' }, ahead[] = { 'i', 'n', '_', images[i], '\0' };

		make(bed, image, &boxes[i]);
		expect(&boxes[i], image);
		if (i > 0 && images[i - 1] == images[i]) /* it is likely to be asked for again */
			kids_await_roots(bed, ahead, 1);
	}
	make_image(bed, "b", "in_later"); /* another directory, under the same name */
	make(bed, "b", &later);
	expect(&later, "later");
	assert_int_equal(bed_destroy(bed, &later), ERR_NONE);
	for (int i = 0; i < STEPS; i++) {
		assert_int_equal(bed_destroy(bed, &boxes[i]), ERR_NONE);
		bed_assert_gone(bed, &boxes[i], (pid_t)boxes[i].made.pid);
	}
	kids_await_groups(bed, 1);
}

/* The second of an image that is gone is none the less answered, and blanks without roots are made again. */
static void
test_an_image_that_goes_takes_no_blank_along(void **state)
{
	struct bed *bed = *state;
	struct bed_box box;

	make_image(bed, "a", "in_a");
	for (int i = 0; i < 2; i++) {
		make(bed, "a", &box);
		assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	}
	kids_await_roots(bed, "in_a", 1);
	assert_int_equal(run_shell("rm -rf %s/a", bed->dir), 0);
	assert_int_not_equal(try_make(bed, "a", &box), ERR_NONE);
	kids_await_blanks(bed, 1);
	kids_await_directories(bed, 0);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	bed_expect(&box, "echo alive", "alive\n");
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	kids_await_groups(bed, 1);
}

static void
test_a_root_goes_with_its_spawner(void **state)
{
	struct bed *bed = *state;
	struct bed_box boxes[2];

	make_image(bed, "a", "in_a");
	make(bed, "a", &boxes[0]);
	make(bed, "a", &boxes[1]);
	kids_await_roots(bed, "in_a", 1);
	kids_await_directories(bed, 1);
	bed_stop_spawner(bed, SIGKILL);
	bed_set(bed, "SANDBOX_BLANKS", "0");
	bed_start_spawner(bed);
	kids_await_directories(bed, 0);
	kids_await_groups(bed, 2); /* of what was one */
	assert_int_equal(bed_count(bed), 2);
	for (int i = 0; i < 2; i++) {
		bed_expect(&boxes[i], "echo alive", "alive\n");
		assert_int_equal(bed_destroy(bed, &boxes[i]), ERR_NONE);
		bed_assert_gone(bed, &boxes[i], (pid_t)boxes[i].made.pid);
	}
	kids_await_groups(bed, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_root_made_ahead_is_for_its_image_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_image_that_goes_takes_no_blank_along, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_root_goes_with_its_spawner, set_up, tear_down),
	};

	bed_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
