/* progress.c - a rate of the last seconds, and what is left by it. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/progress.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "orchardctl/command.h"
#include "orchardctl/output/cell.h"

#include <stdio.h>
#include <sys/ioctl.h>

enum {
	DRAW_MS = 100,
	RATE_MS = 1000,
	PATIENCE_MS = 300 /* what is over sooner needs no line */,
	NAME_COLUMNS = 28
};

void
progress_init(struct progress *progress, const struct ctl *ctl, const char *name, int64_t total)
{
	struct winsize size = { 0 };

	*progress = (struct progress){ .name = cell_line(name),
		.total = total,
		.shown = !ctl->quiet && isatty(STDERR_FILENO),
		.columns = 80 };
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		progress->columns = size.ws_col;
	progress->began_ms = progress->mark_ms = clock_boot_ms();
}

void
progress_fini(struct progress *progress)
{
	free(progress->name);
	progress->name = NULL;
}

static char *
left_text(const struct progress *progress)
{
	AUTO_FREE char *time = NULL;
	double seconds;

	if (progress->total < 0 || progress->rate < 1)
		return alloc_string("");
	seconds = (double)(progress->total - progress->done) / progress->rate;
	time = cell_duration(seconds < 1 ? 1 : (double)(int64_t)(seconds + 0.5));
	return alloc_format("  %s left", time);
}

static char *
amount_text(const struct progress *progress)
{
	AUTO_FREE char *done = cell_bytes((double)progress->done), *total = NULL;
	double part;

	if (progress->total < 0)
		return alloc_format("%s", done);
	total = cell_bytes((double)progress->total);
	part = progress->total > 0 ? (double)progress->done / (double)progress->total : 1;
	return alloc_format("%3d%%  %s of %s", part < 1 ? (int)(100 * part) : 100, done, total);
}

char *
progress_text(const struct progress *progress, int64_t now_ms, bool over)
{
	double seconds = (double)(now_ms - progress->began_ms) / 1000;
	double mean = seconds > 0.001 ? (double)progress->done / seconds : 0;
	AUTO_FREE char *amount = amount_text(progress), *rate = cell_bytes(over ? mean : progress->rate);
	AUTO_FREE char *time = over ? cell_duration(seconds) : NULL;
	AUTO_FREE char *left = over ? alloc_format("  in %s", time) : left_text(progress);
	AUTO_FREE char *line = NULL;
	size_t width = cell_width(progress->name);
	size_t end = 0;

	line = alloc_format("%s%*s  %s  %s/s%s", progress->name,
		width < NAME_COLUMNS ? (int)(NAME_COLUMNS - width) : 0, "", amount, rate, left);
	/* Cut between characters, and never into the last column, where some terminals wrap. */
	for (unsigned column = 0; line[end] != '\0' && column + 1 < progress->columns; column++)
		for (end++; ((unsigned char)line[end] & 0xc0) == 0x80; end++)
			;
	line[end] = '\0';
	return STEAL_PTR(line);
}

static void
measure(struct progress *progress, int64_t now_ms)
{
	int64_t ms = now_ms - progress->mark_ms, bytes = progress->done - progress->mark_done;
	double rate = ms > 0 ? 1000 * (double)bytes / (double)ms : 0;

	if (bytes < 0) {
		progress->mark_ms = now_ms;
		progress->mark_done = progress->done;
		return;
	}
	if (ms < RATE_MS && progress->rate > 0)
		return;
	progress->rate = progress->rate > 0 ? 0.6 * progress->rate + 0.4 * rate : rate;
	if (ms < RATE_MS)
		return;
	progress->mark_ms = now_ms;
	progress->mark_done = progress->done;
}

void
progress_expect(struct progress *progress, int64_t total)
{
	progress->total = total;
	progress->about = true;
	progress->began_ms = progress->mark_ms = clock_boot_ms();
}

void
progress_at(struct progress *progress, int64_t done)
{
	int64_t now = clock_boot_ms();
	AUTO_FREE char *line = NULL;

	progress->done = done;
	if (progress->about && progress->total >= 0 && done > progress->total)
		progress->total = -1;
	if (!progress->shown || now - progress->began_ms < PATIENCE_MS || now - progress->drawn_ms < DRAW_MS)
		return;
	measure(progress, now);
	progress->drawn_ms = now;
	line = progress_text(progress, now, false);
	fprintf(stderr, "\r%s\033[K", line);
}

void
progress_end(struct progress *progress, bool success)
{
	AUTO_FREE char *line = NULL;

	if (!progress->shown || progress->drawn_ms == 0)
		return;
	if (progress->about)
		progress->total = -1;
	line = success ? progress_text(progress, clock_boot_ms(), true) : NULL;
	fprintf(stderr, "\r%s\033[K%s", success ? line : "", success ? "\n" : "");
}
