/*
 * cmd_top.c - top: what sandboxes use, live.
 *
 * On a terminal the table is drawn over itself in the other screen, which is left on every way out; elsewhere each look
 * is a table of its own.
 */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/output/cell.h"
#include "orchardctl/output/print.h"
#include "orchardctl/top/usage.h"

#include <json-c/json.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

#define INTERVAL_S 2.0
#define FIRST_S    0.5 /* the first look needs another one soon, to have a rate */

enum { LIMIT = 200, HEAD_LINES = 3 };

static const struct column columns[] = {
	{ "SANDBOX", "sandbox_id", COLUMN_TEXT, false },
	{ "CPU %", "cpu_percent", COLUMN_TEXT, false },
	{ "CPUS", "cpu_limit", COLUMN_TEXT, false },
	{ "MEMORY", "memory_bytes", COLUMN_BYTES, false },
	{ "MEM %", "memory_percent", COLUMN_TEXT, false },
	{ "LIMIT", "memory_limit", COLUMN_TEXT, false },
	{ "PEAK", "memory_peak_bytes", COLUMN_BYTES, false },
	{ "PIDS", "pids", COLUMN_TEXT, false },
	{ "DISK", "disk_bytes", COLUMN_BYTES, false },
	{ "STATUS", "status", COLUMN_STATUS, false },
	{ NULL, NULL, COLUMN_TEXT, false },
};

struct top {
	struct ctl *ctl;
	struct sandbox_filter filter;
	double interval_s;
	long long count; /* tables; 0: until it is interrupted */
	enum usage_order order;
	bool live; /* on a terminal */
	bool keys; /* the terminal gives each key at once */
	struct termios saved;
	struct json_object *before;
};

static enum usage_order
order_named(const char *name)
{
	static const char *const names[] = { "cpu", "memory", "disk", "pids", "name" };
	size_t i = 0;

	while (i + 1 < sizeof names / sizeof *names && strcmp(names[i], name) != 0)
		i++;
	return (enum usage_order)i;
}

static bool
take(struct args *args, int code, struct top *top)
{
	switch (code) {
	case 'l':
		return args_label(args, &top->filter.label);
	case 'n':
		return args_whole(args, "--count", 1, 1000000000, &top->count);
	case OPT_SORT:
		top->order = order_named(args->value);
		return true;
	case OPT_INTERVAL:
		if (!args_duration(args, "--interval", &top->interval_s))
			return false;
		if (top->interval_s < 0.1)
			args_fail(args, "--interval is 100ms at least");
		return top->interval_s >= 0.1;
	case ARG_WORD:
		args_fail(args, "what is \"%s\"? One sandbox is shown by 'orchardctl get'", args->value);
		return false;
	default:
		return false;
	}
}

static double
sum_of(struct json_object *rows, const char *key)
{
	double sum = 0;

	for (size_t i = 0; i < json_object_array_length(rows); i++)
		sum += json_object_get_double(print_member(json_object_array_get_idx(rows, i), key));
	return sum;
}

/* What fits on the screen below the head. */
static struct json_object *
first_rows(struct json_object *rows)
{
	struct winsize size = { .ws_row = 24 };
	struct json_object *first;
	size_t room;

	(void)!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	room = size.ws_row > HEAD_LINES + 1 ? size.ws_row - HEAD_LINES - 1u : 1;
	first = must_alloc(json_object_new_array());
	for (size_t i = 0; i < json_object_array_length(rows) && i < room; i++)
		json_object_array_add(first, json_object_get(json_object_array_get_idx(rows, i)));
	return first;
}

static void
draw_live(const struct top *top, struct json_object *rows)
{
	AUTO_FREE char *memory = cell_bytes(sum_of(rows, "memory_bytes"));
	AUTO_JSON struct json_object *shown = first_rows(rows);

	/* Lines that are too long end at the edge instead of wrapping. */
	printf("\033[H\033[J\033[?7l%s   sandboxes %zu   CPU %.0f%%   memory %s   q ends\n\n", top->ctl->server.url,
		json_object_array_length(rows), sum_of(rows, "cpu_percent"), memory);
	print_list(top->ctl, shown, columns, "sandbox_id", "there are no sandboxes");
	printf("\033[?7h");
}

static void
show(const struct top *top, struct json_object *rows, bool first)
{
	if (top->live) {
		draw_live(top, rows);
	} else if (top->ctl->output == OUTPUT_JSON && top->count != 1) {
		puts(json_object_to_json_string_ext(rows, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	} else {
		if (!first && top->ctl->output == OUTPUT_TABLE)
			putchar('\n');
		print_list(top->ctl, rows, columns, "sandbox_id", "there are no sandboxes");
	}
	fflush(stdout);
}

/* Each key at once and unseen; Ctrl-C stays a signal. Again and again: a shell that had us stopped has settings of its own. */
static void
take_keys(const struct top *top)
{
	struct termios mode = top->saved;

	mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	mode.c_cc[VMIN] = 1;
	mode.c_cc[VTIME] = 0;
	if (top->keys && tcgetpgrp(STDIN_FILENO) == getpgrp())
		tcsetattr(STDIN_FILENO, TCSANOW, &mode);
}

/* 'q', or the terminal is gone. */
static bool
is_left(void)
{
	char typed[64];
	ssize_t len = read(STDIN_FILENO, typed, sizeof typed);

	return len <= 0 ? len == 0 || errno != EINTR : memchr(typed, 'q', (size_t)len) != NULL;
}

/* The times of the looks don't drift by what they take. False: it is over. */
static bool
pause_until(const struct top *top, int64_t at_ms)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int64_t ms;

	take_keys(top);
	while ((ms = at_ms - clock_boot_ms()) > 0 && top->ctl->signals->first == 0) {
		in.revents = 0;
		client_step(top->ctl->client, &in, top->keys ? 1 : 0, ms < 60000 ? (int)ms : 60000);
		if (in.revents != 0 && is_left())
			return false;
	}
	return top->ctl->signals->first == 0;
}

static int
look_again(struct top *top, struct json_object **ret_rows)
{
	struct err err;
	struct json_object *now = usage_look(top->ctl, &top->filter, &err);

	if (now == NULL)
		return ctl_fail(top->ctl, &err);
	*ret_rows = usage_rows(top->before, now);
	usage_sort(*ret_rows, top->order);
	json_object_put(top->before);
	top->before = now;
	return CTL_OK;
}

static int
run(struct top *top)
{
	int64_t next_ms = clock_boot_ms() + (int64_t)(1000 * FIRST_S);
	struct json_object *rows = NULL;
	int status;

	for (long long shown = 0; top->count == 0 || shown <= top->count; shown++) {
		status = look_again(top, &rows);
		if (status != CTL_OK)
			return status;
		/* The first has no rates; people get it all the same, so that they see something. */
		if (shown > 0 || top->live)
			show(top, rows, shown <= 1);
		json_object_put(rows);
		if (ferror(stdout))
			return CTL_FAILED;
		if (top->count != 0 && shown == top->count)
			break;
		if (!pause_until(top, next_ms))
			return top->ctl->signals->first != 0 ? CTL_SIGNAL + top->ctl->signals->first : CTL_OK;
		next_ms = clock_boot_ms() + (int64_t)(1000 * top->interval_s);
	}
	return CTL_OK;
}

/* Ctrl-C is one way to leave what is live: no failure. */
static int
run_caught(struct top *top)
{
	struct ctl *ctl = top->ctl;
	struct signals signals;
	int status;

	signals_catch(&signals);
	ctl->signals = &signals;
	client_watch_signals(ctl->client, &signals);
	if (top->live)
		printf("\033[?1049h\033[?25l");
	top->keys = top->live && tcgetattr(STDIN_FILENO, &top->saved) == 0;
	status = run(top);
	if (top->keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &top->saved);
	if (top->live)
		printf("\033[?25h\033[?1049l");
	fflush(stdout);
	if (top->live && signals.first == SIGINT)
		status = CTL_OK;
	client_watch_signals(ctl->client, NULL);
	ctl->signals = NULL;
	return status;
}

int
cmd_top(struct ctl *ctl, int argc, char **argv)
{
	struct top top = { .ctl = ctl, .interval_s = INTERVAL_S, .filter.limit = LIMIT };
	struct args args;
	int code, status;

	args_init(&args, ctl, argc, argv);
	while ((code = args_next(&args)) != ARG_END)
		if (!take(&args, code, &top))
			return args.status;
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	top.live = top.count == 0 && isatty(STDOUT_FILENO) && ctl->output == OUTPUT_TABLE && !ctl->quiet;
	status = run_caught(&top);
	json_object_put(top.before);
	return status;
}
