/* helper.h - what a helper of the pool is told, what it says, and its loop. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_HELPER_H
#define ORCHARD_SPAWNER_HELPER_H

#include "base/cleanup.h"
#include "base/err.h"
#include "spawner/make/make.h"

#include <stdbool.h>

struct site;

enum { HELPER_BLANKS = 16 }; /* that one can hold */

/* A packet is the kind, and then what belongs to it. */
enum order_kind {
	ORDER_MAKE, /* struct make_order */
	ORDER_UNMAKE, /* struct unmake_order, as of the next two */
	ORDER_SETTLE,
	ORDER_CHECK_NET,
	ORDER_SWEEP, /* struct unmake_share */
	ORDER_BLANK, /* struct blank_order: made, and held until ORDER_MAKE takes the last of them */
	ORDER_DISCARD /* nothing: all that are held go */
};

enum helper_state { HELPER_STARTED, HELPER_FINISHED, HELPER_RESTED };

/* What a helper says: a process was started, the order is done, and after a making that it is free again. */
struct helper_word {
	enum helper_state state;
	bool failed;
	struct make_result made;
	struct err why;
};

/* Does one order after the other until the other end of fd is closed. */
_Noreturn void helper_main(const struct site *site, int fd);

#endif
