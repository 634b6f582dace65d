/* command.c - the phases of a command: running, asked to end, being killed. */
/* SPDX-License-Identifier: MIT */
#include "agent/command.h"

#include "base/alloc.h"
#include "agent/config.h"
#include "agent/job.h"
#include "agent/launch.h"
#include "agent/noise.h"
#include "agent/oom.h"
#include "agent/request.h"
#include "agent/stream.h"
#include "agent/tree.h"
#include "base/clock.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
	COMMAND_TICK_MS = 10,
	COMMAND_GIVE_UP_MS = 5000 /* after KILL: only an uninterruptible process is left by then */
};

enum command_phase { COMMAND_RUNNING, COMMAND_ASKED, COMMAND_KILLING };

struct command {
	struct command_set *set;
	struct job *job;
	enum command_phase phase;
	pid_t pid;
	struct tree tree;
	struct stream *out, *err;
	struct noise noise;
	struct event *timer;
	int64_t timeout_ms, grace_ms;
	int64_t started_us;
	int64_t limit_ms; /* boot clock: end of the grace, or when killing is given up */
	bool leader_done;
	int status;
	uint64_t oom_before;
	TAILQ_ENTRY(command) link;
};

struct command_set {
	struct command_set_options options;
	TAILQ_HEAD(, command) running;
};

struct command_set *
command_set_create(const struct command_set_options *options)
{
	struct command_set *set = alloc_zero(1, sizeof *set);

	set->options = *options;
	TAILQ_INIT(&set->running);
	return set;
}

/* drop: background processes may go on writing to nowhere. */
static void
command_free(struct command *command, bool drop)
{
	struct stream *streams[] = { command->out, command->err };

	for (size_t i = 0; i < 2; i++) {
		if (streams[i] != NULL && drop)
			stream_drop(streams[i]);
		else if (streams[i] != NULL)
			stream_free(streams[i]);
	}
	if (command->timer != NULL)
		event_free(command->timer);
	tree_fini(&command->tree);
	TAILQ_REMOVE(&command->set->running, command, link);
	command->job->command = NULL;
	free(command);
}

void
command_set_free(struct command_set *set)
{
	struct command *command;

	while ((command = TAILQ_FIRST(&set->running)) != NULL) {
		tree_signal(&command->tree, SIGKILL);
		command_free(command, false);
	}
	free(set);
}

static void
command_schedule(struct command *command, int64_t delay_ms)
{
	struct timeval delay = clock_tv(delay_ms);

	event_add(command->timer, &delay);
}

static void
command_read_status(struct command *command)
{
	struct job *job = command->job;
	bool killed = false;

	if (WIFSIGNALED(command->status)) {
		job->verdict = JOB_SIGNALED;
		job->signal = WTERMSIG(command->status);
		job->exit_code = 128 + job->signal;
		killed = job->signal == SIGKILL;
	} else {
		job->verdict = JOB_EXITED;
		job->exit_code = WEXITSTATUS(command->status);
		killed = job->exit_code == 128 + SIGKILL;
	}
	if (killed && oom_count(command->set->options.config->oom_fd) > command->oom_before) {
		job->verdict = JOB_OOM_KILLED;
		job->error = alloc_string("out of memory: the kernel killed it at the sandbox's memory limit");
	}
}

static void
command_read_stop(struct command *command, enum job_verdict verdict)
{
	struct job *job = command->job;
	const char *how = tree_is_exact(&command->tree) ? ""
							: " (no cgroup: processes that hid from it may still run)";

	if (!command->leader_done)
		how = " (a process of it does not end: it waits in the kernel)";
	job->verdict = verdict;
	free(job->error);
	if (verdict == JOB_CANCELED) {
		job->error = alloc_format("Command was canceled%s", how);
		return;
	}
	job->exit_code = 124;
	job->signal = 0;
	job->error = alloc_format("Command timed out after %gs%s", (double)command->timeout_ms / 1000, how);
}

static void
command_finish(struct command *command)
{
	struct command_set *set = command->set;
	struct job *job = command->job;
	bool stopped = command->phase != COMMAND_RUNNING;
	enum job_verdict verdict = job->verdict;

	stream_collect_rest(command->out);
	stream_collect_rest(command->err);
	noise_end(&command->noise, &job->err);
	job->usage.wall_s = (double)(clock_boot_us() - command->started_us) / 1e6;
	if (command->leader_done)
		command_read_status(command);
	if (stopped)
		command_read_stop(command, verdict);
	command_free(command, !stopped);
	set->options.on_end(job, set->options.arg);
}

static void
command_kill_tick(struct command *command)
{
	int alive = tree_signal(&command->tree, SIGKILL);

	if ((command->leader_done && alive <= 0) || clock_boot_ms() >= command->limit_ms)
		command_finish(command);
	else
		command_schedule(command, COMMAND_TICK_MS);
}

static void
command_kill(struct command *command)
{
	command->phase = COMMAND_KILLING;
	command->limit_ms = clock_boot_ms() + COMMAND_GIVE_UP_MS;
	command_kill_tick(command);
}

static void
command_stop(struct command *command, enum job_verdict verdict)
{
	if (command->phase != COMMAND_RUNNING)
		return;
	command->job->verdict = verdict;
	command->phase = COMMAND_ASKED;
	command->limit_ms = clock_boot_ms() + command->grace_ms;
	if (command->grace_ms > 0)
		tree_signal(&command->tree, SIGTERM);
	command_schedule(command, command->grace_ms);
}

/* Once the leader has ended, the rest may still use the grace, but no longer than it needs. */
static void
command_asked_tick(struct command *command)
{
	int64_t left = command->limit_ms - clock_boot_ms();

	if (left <= 0 || (command->leader_done && tree_count(&command->tree) <= 0))
		command_kill(command);
	else
		command_schedule(command, command->leader_done && left > COMMAND_TICK_MS ? COMMAND_TICK_MS : left);
}

static void
command_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct command *command = arg;

	(void)fd;
	(void)what;
	switch (command->phase) {
	case COMMAND_RUNNING:
		command_stop(command, JOB_TIMED_OUT);
		break;
	case COMMAND_ASKED:
		command_asked_tick(command);
		break;
	case COMMAND_KILLING:
		command_kill_tick(command);
		break;
	}
}

void
command_cancel(struct job *job)
{
	if (job->command != NULL)
		command_stop(job->command, JOB_CANCELED);
}

/* False: the job says why. */
static bool
command_launch(struct command *command, const struct exec_request *request)
{
	struct command_set *set = command->set;
	struct event_base *base = set->options.base;
	struct launch launch = {
		.config = set->options.config,
		.ground = set->options.ground,
		.tree = &command->tree,
		.request = request,
	};
	struct launched launched;

	if (launch_command(&launch, command->job, &launched) < 0)
		return false;
	command->pid = launched.pid;
	command->tree.leader = launched.pid;
	noise_init(&command->noise, launched.tty_noise);
	command->out = stream_create(base, launched.out_fd, &command->job->out, NULL);
	command->err = stream_create(base, launched.err_fd, &command->job->err, &command->noise);
	command->timer = evtimer_new(base, command_on_timer, command);
	if (command->out == NULL || command->err == NULL || command->timer == NULL)
		abort();
	return true;
}

void
command_start(struct command_set *set, struct job *job, const struct exec_request *request)
{
	struct command *command = alloc_zero(1, sizeof *command);

	command->set = set;
	command->job = job;
	command->timeout_ms = request->timeout_ms;
	command->grace_ms = request->kill_grace_ms;
	command->started_us = clock_boot_us();
	command->oom_before = oom_count(set->options.config->oom_fd);
	tree_init(&command->tree, set->options.keeper, job->id);
	job->command = command;
	TAILQ_INSERT_TAIL(&set->running, command, link);
	if (command_launch(command, request)) {
		command_schedule(command, command->timeout_ms);
		return;
	}
	command_free(command, false);
	set->options.on_end(job, set->options.arg);
}

static void
command_read_usage(struct job_usage *usage, const struct rusage *rusage)
{
	usage->cpu_user_s = (double)rusage->ru_utime.tv_sec + (double)rusage->ru_utime.tv_usec / 1e6;
	usage->cpu_sys_s = (double)rusage->ru_stime.tv_sec + (double)rusage->ru_stime.tv_usec / 1e6;
	usage->max_rss_bytes = (int64_t)rusage->ru_maxrss * 1024;
}

bool
command_set_on_exit(struct command_set *set, pid_t pid, int status, const struct rusage *usage)
{
	struct command *command;

	TAILQ_FOREACH(command, &set->running, link)
	if (command->pid == pid && !command->leader_done)
		break;
	if (command == NULL)
		return false;
	command->leader_done = true;
	command->status = status;
	command_read_usage(&command->job->usage, usage);
	if (command->phase == COMMAND_RUNNING)
		command_finish(command);
	else
		command_schedule(command, 0);
	return true;
}
