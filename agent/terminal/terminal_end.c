/*
 * terminal_end.c - how a session ends: by its leader's end, or by hanging up.
 *
 * One timer serves whichever of the two is under way, and afterwards the time for
 * which an ended session is kept.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminal_state.h"

#include "agent/config.h"
#include "base/clock.h"

#include <event2/event.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	TERMINAL_TICK_MS = 10,
	TERMINAL_SLOW_TICK_MS = 100,
	TERMINAL_GIVE_UP_MS = 5000, /* after KILL: only an uninterruptible process is left by then */
	TERMINAL_QUIET_MS = 100, /* after the leader's end, while others hold the terminal */
	TERMINAL_DRAIN_MS = 1500,
	TERMINAL_DRAIN_BYTES = 64 << 10 /* more than the kernel keeps of what the leader wrote */
};

static void
terminal_schedule(struct terminal *terminal, int64_t delay_ms)
{
	struct timeval delay = clock_tv(delay_ms);

	event_add(terminal->timer, &delay);
}

void
terminal_keep(struct terminal *terminal)
{
	struct terminal_shared *shared = terminal->shared;

	if (terminal->detach && !terminal->unwanted)
		terminal_schedule(terminal, shared->config->terminal_keep_ms);
	else
		shared->on_over(terminal, shared->arg);
}

static void
terminal_end_usage(struct terminal *terminal)
{
	double user_s, sys_s;

	terminal->wall_s = (double)(clock_boot_us() - terminal->started_us) / 1e6;
	if (!tree_read_cpu(&terminal->tree, &user_s, &sys_s))
		return;
	terminal->cpu_user_s = user_s;
	terminal->cpu_sys_s = sys_s;
}

static void
terminal_end(struct terminal *terminal)
{
	terminal->phase = TERMINAL_ENDED;
	event_del(terminal->timer);
	terminal_end_usage(terminal);
	tree_fini(&terminal->tree);
	if (terminal->viewer != NULL)
		terminal_tell(terminal);
	else
		terminal_keep(terminal);
}

void
terminal_settle(struct terminal *terminal)
{
	bool stopped = terminal->phase == TERMINAL_RUNNING || terminal->phase == TERMINAL_STOPPED;

	if (terminal->leader_done && terminal->master < 0 && stopped)
		terminal_end(terminal);
}

/* The leader is done and something else holds the terminal open. */
static void
terminal_drain_step(struct terminal *terminal, int64_t now)
{
	bool quiet, late;

	terminal_read(terminal);
	quiet = terminal->emptied && !terminal->held && now - terminal->quiet_ms >= TERMINAL_QUIET_MS;
	late = now >= terminal->drain_by_ms && (terminal->emptied || terminal->drained >= TERMINAL_DRAIN_BYTES);
	if (terminal->master >= 0 && (quiet || late))
		terminal_close_master(terminal);
}

static void
terminal_kill_step(struct terminal *terminal, int64_t now)
{
	int alive = tree_signal(&terminal->tree, SIGKILL);

	if (now >= terminal->limit_ms) {
		if (!terminal->leader_done)
			terminal->status = SIGKILL;
		terminal->leader_done = true;
		terminal_close_master(terminal);
	}
	if (now >= terminal->limit_ms || (terminal->leader_done && alive <= 0))
		terminal->phase = TERMINAL_STOPPED;
}

static void
terminal_stop_step(struct terminal *terminal, int64_t now)
{
	if (terminal->phase == TERMINAL_KILLING) {
		terminal_kill_step(terminal, now);
	} else if (terminal->leader_done && tree_count(&terminal->tree) <= 0) {
		terminal->phase = TERMINAL_STOPPED;
	} else if (now >= terminal->limit_ms) {
		terminal->phase = TERMINAL_KILLING;
		terminal->limit_ms = now + TERMINAL_GIVE_UP_MS;
		terminal->tick_ms = TERMINAL_TICK_MS;
		terminal_kill_step(terminal, now);
	}
}

/* Soon at first, then less often: many may hang up at once. */
static void
terminal_tick_later(struct terminal *terminal)
{
	terminal_schedule(terminal, terminal->tick_ms);
	terminal->tick_ms *= 2;
	if (terminal->tick_ms > TERMINAL_SLOW_TICK_MS)
		terminal->tick_ms = TERMINAL_SLOW_TICK_MS;
}

void
terminal_on_timer(int fd, short what, void *arg)
{
	struct terminal *terminal = arg;
	int64_t now = clock_boot_ms();

	(void)fd;
	(void)what;
	if (terminal->phase == TERMINAL_ENDED) {
		terminal->shared->on_over(terminal, terminal->shared->arg);
		return;
	}
	if (terminal->phase == TERMINAL_ASKED || terminal->phase == TERMINAL_KILLING)
		terminal_stop_step(terminal, now);
	if (terminal->leader_done && terminal->master >= 0)
		terminal_drain_step(terminal, now);
	terminal_tick_later(terminal);
	terminal_settle(terminal);
}

bool
terminal_on_exit(struct terminal *terminal, pid_t pid, int status, const struct rusage *usage)
{
	if (terminal->pid != pid || terminal->leader_done)
		return false;
	terminal->leader_done = true;
	terminal->status = status;
	terminal->cpu_user_s = (double)usage->ru_utime.tv_sec + (double)usage->ru_utime.tv_usec / 1e6;
	terminal->cpu_sys_s = (double)usage->ru_stime.tv_sec + (double)usage->ru_stime.tv_usec / 1e6;
	close(terminal->slave);
	terminal->slave = -1;
	terminal->quiet_ms = clock_boot_ms();
	terminal->drain_by_ms = terminal->quiet_ms + TERMINAL_DRAIN_MS;
	terminal->tick_ms = TERMINAL_TICK_MS;
	terminal_read(terminal);
	terminal_tick_later(terminal);
	terminal_settle(terminal);
	return true;
}

static void
terminal_stop(struct terminal *terminal, enum terminal_phase phase, int64_t grace_ms)
{
	terminal->phase = phase;
	terminal->limit_ms = clock_boot_ms() + grace_ms;
	terminal->tick_ms = TERMINAL_TICK_MS;
	terminal_schedule(terminal, 0);
}

void
terminal_hang_up(struct terminal *terminal)
{
	terminal->unwanted = true;
	if (terminal->phase == TERMINAL_ENDED && terminal->viewer == NULL) {
		terminal_keep(terminal);
		return;
	}
	if (terminal->phase != TERMINAL_RUNNING || terminal->leader_done)
		return;
	tree_signal(&terminal->tree, SIGHUP);
	tree_signal(&terminal->tree, SIGCONT);
	terminal_stop(terminal, TERMINAL_ASKED, terminal->shared->config->terminal_grace_ms);
}

void
terminal_kill(struct terminal *terminal)
{
	if (terminal->phase == TERMINAL_RUNNING || terminal->phase == TERMINAL_ASKED)
		terminal_stop(terminal, TERMINAL_KILLING, TERMINAL_GIVE_UP_MS);
}
