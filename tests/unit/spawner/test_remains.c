/* test_remains.c - what is left of sandboxes, and what of them still lives under other settings, is given to nobody. */
/* SPDX-License-Identifier: MIT */
#include "bed.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/proc.h"
#include "conf/config.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000, IDS = 65536, BASES = 3 };

static int
set_up(void **state)
{
	static struct bed bed;

	bed_open(&bed);
	*state = &bed;
	return 0;
}

static int
tear_down(void **state)
{
	bed_close(*state);
	return 0;
}

/* Waits for work that nobody is told the end of. */
static void
await_gone(const struct bed *bed, const char *path)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (run_shell("test ! -e %s/%s", bed->dir, path) != 0) {
		struct timespec pause = { .tv_nsec = 10000000 };

		assert_true(clock_boot_ms() < until);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
	}
}

static void
test_what_belongs_to_nobody_goes_unlisted(void **state)
{
	struct bed *bed = *state;
	struct spawn_item item, later;
	struct bed_box box;

	bed_start_spawner(bed);
	assert_int_equal(bed_make(bed, &box), ERR_NONE);
	assert_true(bed_find(bed, box.uid, &item));
	clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = 10000000 }, NULL);
	assert_true(bed_find(bed, box.uid, &later));
	assert_true(later.known_ms > item.known_ms);
	assert_int_equal(run_shell("cd %s/run && mkdir -p runtime/%s sandboxes/sb-alone "
				   "runtime/22222222-2222-4222-8222-222222222222/state",
				 bed->dir, box.uid),
		0);
	assert_int_equal(bed_count(bed), 1);
	await_gone(bed, "run/runtime/22222222-2222-4222-8222-222222222222");
	await_gone(bed, "run/sandboxes/sb-alone");
	assert_int_equal(run_shell("test -d %s/run/runtime/%s", bed->dir, box.uid), 0);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	assert_int_not_equal(run_shell("test -e %s/run/runtime/%s", bed->dir, box.uid), 0);
}

static void
test_remains_of_a_failed_create_stay_known(void **state)
{
	struct bed *bed = *state;
	struct bed_box box;
	struct spawn_create create;
	struct spawn_item item;

	bed_start_spawner(bed);
	bed_fill_create(bed, &create, &box);
	snprintf(create.image, sizeof create.image, "dir:%s/bad", bed->dir);
	/* what is mounted upon in the spawner's own namespace cannot be removed */
	assert_int_equal(run_shell("cd %s && mkdir -p bad run/runtime/%s && touch bad/proc && "
				   "nsenter -t %d -m mount -t tmpfs busy %s/run/runtime/%s",
				 bed->dir, box.uid, (int)bed->spawner, bed->dir, box.uid),
		0);
	assert_int_not_equal(bed_create(bed, &create, NULL), ERR_NONE);
	assert_true(bed_find(bed, box.uid, &item));
	assert_int_not_equal(bed_destroy(bed, &box), ERR_NONE);
	assert_true(bed_find(bed, box.uid, &item));
	assert_int_equal(
		run_shell("nsenter -t %d -m umount %s/run/runtime/%s", (int)bed->spawner, bed->dir, box.uid), 0);
	assert_int_equal(bed_destroy(bed, &box), ERR_NONE);
	assert_false(bed_find(bed, box.uid, &item));
	bed_assert_gone(bed, &box, 0);
}

static long
first_host_id(const struct bed_box *box)
{
	char path[64];
	long first = -1;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/uid_map", (int)box->made.pid);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %ld", &first), 1);
	fclose(file);
	return first;
}

static void
test_another_idmap_base_gives_nobody_the_ids_of_another(void **state)
{
	struct bed *bed = *state;
	/* the others have ranges in the place of the first one's; those of the second lie across its bounds */
	const long base = (long)bed->config->idmap_base, bases[BASES] = { base, base - IDS + 1000, base - IDS };
	struct bed_box boxes[BASES];
	char text[32];

	for (int i = 0; i < BASES; i++) {
		bed_stop_spawner(bed, SIGTERM);
		snprintf(text, sizeof text, "%ld", bases[i]);
		bed_set(bed, "IDMAP_BASE", text);
		bed_start_spawner(bed);
		assert_int_equal(bed_make(bed, &boxes[i]), ERR_NONE);
		for (int j = 0; j < i; j++) {
			bed_expect(&boxes[j], "echo alive", "alive\n");
			assert_true(labs(first_host_id(&boxes[i]) - first_host_id(&boxes[j])) >= IDS);
		}
	}
	for (int i = 0; i < BASES; i++)
		assert_int_equal(bed_destroy(bed, &boxes[i]), ERR_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_belongs_to_nobody_goes_unlisted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_remains_of_a_failed_create_stay_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			test_another_idmap_base_gives_nobody_the_ids_of_another, set_up, tear_down),
	};

	bed_require_root();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
