/* progress.h - how far a copy is, on a terminal only: one line of stderr that is written over. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COPY_PROGRESS_H
#define ORCHARDCTL_COPY_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct ctl;

struct progress {
	bool shown; /* stderr is a terminal, and nobody asked for quiet */
	char *name; /* owned; what is copied */
	int64_t total; /* bytes; -1: not known */
	bool about; /* the total is an estimate, and what has come in the end is right */
	int64_t done;
	int64_t began_ms, drawn_ms;
	int64_t mark_ms, mark_done; /* where the present rate is counted from */
	double rate; /* bytes a second, of the last seconds; 0: not known yet */
	unsigned columns;
};

void progress_init(struct progress *progress, const struct ctl *ctl, const char *name, int64_t total);
void progress_fini(struct progress *progress);
/* What is known later than it begins, and may be wrong by a little. */
void progress_expect(struct progress *progress, int64_t total);
/* It is so far; may go back when something is sent again. */
void progress_at(struct progress *progress, int64_t done);
/* The last state stays on the screen; without success the line is wiped. */
void progress_end(struct progress *progress, bool success);

/* The line, at most columns wide; malloc'ed. Pure. */
char *progress_text(const struct progress *progress, int64_t now_ms, bool over);

#endif
