/* create_times.c - one counter of the scoreboard per step. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/create_times.h"

_Static_assert(METRIC_CREATE_RECORD_US - METRIC_CREATE_WAIT_US == MAKE_RECORD - MAKE_WAIT,
	"a counter for each step, in their order");

void
create_times_count(
	struct shm_scoreboard *board, struct proc_ref self, const struct make_result *made, int64_t all_us)
{
	if (board == NULL)
		return;
	for (int step = MAKE_FILES; step < MAKE_STEPS; step++) {
		all_us -= made->step_us[step];
		scoreboard_add(board, self, (enum metric)(METRIC_CREATE_WAIT_US + step), made->step_us[step]);
	}
	scoreboard_add(board, self, METRIC_CREATE_WAIT_US, all_us > 0 ? all_us : 0);
	scoreboard_add(board, self, METRIC_CREATES_MADE, 1);
}
