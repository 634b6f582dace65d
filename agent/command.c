/* command.c - the phases of a command: running, asked to end, being killed. */
/* SPDX-License-Identifier: MIT */
#include "agent/command.h"

#include "base/alloc.h"
#include "agent/config.h"
#include "agent/disk.h"
#include "agent/feed.h"
#include "agent/job.h"
#include "agent/launch.h"
#include "agent/oom.h"
#include "agent/patch/patch.h"
#include "agent/request.h"
#include "agent/stream.h"
#include "agent/tree.h"
#include "agent/user.h"
#include "base/clock.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
	struct launch_parts *parts; /* while the leader lives */
	struct event *timer;
	int64_t timeout_ms, grace_ms;
	int64_t started_us;
	int64_t limit_ms; /* boot clock: end of the grace, or when killing is given up */
	bool leader_done;
	int owed; /* outputs whose reader is waited for, since the leader has ended */
	bool in_start_files; /* of a login shell, when it ended */
	int status;
	uint64_t oom_before;
	bool oom_killed; /* its leader was, and nobody asked for its end: the rest follows */
	TAILQ_ENTRY(command) link;
};

struct command_set {
	struct command_set_options options;
	struct user_cache users;
	bool stopping;
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

static void
command_release(struct command *command)
{
	launch_parts_free(command->parts);
	command->parts = NULL;
}

/* drop: background processes may go on writing to nowhere. */
static void
command_free(struct command *command, bool drop)
{
	struct stream *streams[] = { command->out, command->err };

	command_release(command);
	for (size_t i = 0; i < 2; i++) {
		if (streams[i] != NULL && drop)
			stream_drop(streams[i]);
		else if (streams[i] != NULL)
			stream_free(streams[i]);
	}
	if (command->job->feed != NULL)
		feed_close(command->job->feed);
	if (command->timer != NULL)
		event_free(command->timer);
	tree_fini(&command->tree);
	TAILQ_REMOVE(&command->set->running, command, link);
	command->job->command = NULL;
	free(command);
}

void
command_set_stop(struct command_set *set)
{
	set->stopping = true;
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

static bool
command_is_oom_killed(const struct command *command)
{
	bool killed = WIFSIGNALED(command->status) ? WTERMSIG(command->status) == SIGKILL
						   : WEXITSTATUS(command->status) == 128 + SIGKILL;

	return killed && oom_count(command->set->options.config->oom_fd) > command->oom_before;
}

static void
command_read_status(struct command *command)
{
	struct job *job = command->job;

	if (WIFSIGNALED(command->status)) {
		job->verdict = JOB_SIGNALED;
		job->signal = WTERMSIG(command->status);
		job->exit_code = 128 + job->signal;
	} else {
		job->verdict = JOB_EXITED;
		job->exit_code = WEXITSTATUS(command->status);
	}
	if (command_is_oom_killed(command)) {
		free(job->error);
		job->verdict = JOB_OOM_KILLED;
		job->error = alloc_string("out of memory: the kernel killed it at the sandbox's memory limit");
	}
}

/* What fails for lack of room seldom says so where its caller looks. */
static void
command_read_disk(struct job *job)
{
	if (job->exit_code != 0 && job->error == NULL && disk_is_full())
		job->error = alloc_string("the sandbox's disk is full: remove files, or make one with more disk");
}

static void
command_read_stop(struct command *command, enum job_verdict verdict)
{
	struct job *job = command->job;
	const char *how = tree_is_exact(&command->tree) ? ""
							: " (no cgroup: processes that hid from it may still run)";

	if (command->in_start_files)
		how = " (its start files had not ended)";
	if (!command->leader_done)
		how = " (a process of it does not end: it waits in the kernel)";
	job->verdict = verdict;
	free(job->error);
	if (verdict == JOB_DISK_FULL) {
		job->error = alloc_format(
			"the sandbox wrote more than its disk limit%s: remove files, or make one with more disk",
			how);
		return;
	}
	if (verdict == JOB_CANCELED) {
		job->error = alloc_format("Command was canceled%s", how);
		return;
	}
	job->exit_code = 124;
	job->signal = 0;
	job->error = alloc_format("Command timed out after %gs%s", (double)command->timeout_ms / 1000, how);
}

static double
command_seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static void
command_add_usage(struct command *command, const struct rusage *leader)
{
	struct job_usage *usage = &command->job->usage;
	int64_t max_rss_bytes = (int64_t)leader->ru_maxrss * 1024;

	usage->cpu_user_s += command_seconds(&leader->ru_utime);
	usage->cpu_sys_s += command_seconds(&leader->ru_stime);
	if (max_rss_bytes > usage->max_rss_bytes)
		usage->max_rss_bytes = max_rss_bytes;
}

/* The leader's, with what it waited for, is there; the kernel's account of the whole tree replaces it. */
static void
command_end_usage(struct command *command)
{
	struct job_usage *usage = &command->job->usage;
	double user_s, sys_s;

	usage->wall_s = (double)(clock_boot_us() - command->started_us) / 1e6;
	if (!tree_read_cpu(&command->tree, &user_s, &sys_s))
		return;
	usage->cpu_user_s = user_s;
	usage->cpu_sys_s = sys_s;
}

static void
command_finish(struct command *command)
{
	struct command_set *set = command->set;
	struct job *job = command->job;
	bool stopped = command->phase != COMMAND_RUNNING && !command->oom_killed;
	enum job_verdict verdict = job->verdict;

	command->in_start_files = launch_is_unread(command->parts);
	command_release(command);
	stream_collect_rest(command->out);
	stream_collect_rest(command->err);
	if (command->phase != COMMAND_RUNNING)
		command_end_usage(command);
	if (command->leader_done)
		command_read_status(command);
	if (stopped)
		command_read_stop(command, verdict);
	else
		command_read_disk(job);
	command_free(command, !stopped);
	set->options.on_end(job, set->options.arg);
}

static void
command_on_taken(void *arg)
{
	struct command *command = arg;

	if (--command->owed == 0)
		command_finish(command);
}

/* Its leader has ended; its end is told once nothing is lost by that. */
static void
command_end(struct command *command)
{
	command_end_usage(command);
	command->owed += !stream_finish(command->out, command_on_taken, command);
	command->owed += !stream_finish(command->err, command_on_taken, command);
	if (command->owed == 0)
		command_finish(command);
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
	if (command->owed > 0) { /* it has ended by itself */
		command_finish(command);
		return;
	}
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

void
command_set_on_disk_full(struct command_set *set)
{
	struct command *command = TAILQ_FIRST(&set->running);

	while (command != NULL) {
		struct command *next = TAILQ_NEXT(command, link);

		if (command->phase == COMMAND_RUNNING)
			command->grace_ms = 0;
		command_stop(command, JOB_DISK_FULL); /* which may free it */
		command = next;
	}
	/* What commands left behind may be what writes. */
	if (getpid() == 1)
		(void)kill(-1, SIGKILL);
}

/* request: NULL when the command is launched again. */
static struct launch
command_launch_terms(struct command *command, const struct exec_request *request)
{
	struct command_set *set = command->set;

	return (struct launch){
		.config = set->options.config,
		.ground = set->options.ground,
		.users = &set->users,
		.tree = &command->tree,
		.request = request,
	};
}

/* False: the job says why. */
static bool
command_launch(struct command *command, const struct exec_request *request)
{
	struct event_base *base = command->set->options.base;
	struct launch launch = command_launch_terms(command, request);
	struct launched launched;

	if (launch_command(&launch, command->job, &launched) < 0)
		return false;
	command->pid = launched.pid;
	command->parts = launched.parts;
	command->tree.leader = launched.pid;
	command->out = stream_create(base, launched.out_fd, &command->job->out);
	command->err = stream_create(base, launched.err_fd, &command->job->err);
	if (launched.stdin_fd >= 0)
		command->job->feed = feed_create(base, launched.stdin_fd, request->stdin_data, request->stdin_len);
	command->timer = evtimer_new(base, command_on_timer, command);
	if (command->out == NULL || command->err == NULL || command->timer == NULL)
		abort();
	return true;
}

static void
command_refused(struct command *command)
{
	struct command_set *set = command->set;
	struct job *job = command->job;

	command_free(command, false);
	set->options.on_end(job, set->options.arg);
}

/* Start files have ended or replaced the login shell. Nothing of the command has run; it does now. */
static void
command_launch_again(struct command *command, int status)
{
	struct launch launch = command_launch_terms(command, NULL);
	bool signaled = WIFSIGNALED(status);

	if (launch_again(&launch, command->parts, command->job, &command->pid) < 0) {
		command_refused(command);
		return;
	}
	command->tree.leader = command->pid;
	command->job->error = alloc_format(
		"start files ended the login shell (%s %d): the command ran without them",
		signaled ? "signal" : "exit status", signaled ? WTERMSIG(status) : WEXITSTATUS(status));
}

void
command_start(struct command_set *set, struct job *job, const struct exec_request *request)
{
	struct command *command = alloc_zero(1, sizeof *command);

	command->set = set;
	command->job = job;
	command->timeout_ms = request->timeout_ms;
	command->grace_ms = request->kill_grace_ms;
	if (request->apply_patch && command->grace_ms < PATCH_GRACE_MS)
		command->grace_ms = PATCH_GRACE_MS;
	command->started_us = clock_boot_us();
	command->oom_before = oom_count(set->options.config->oom_fd);
	tree_init(&command->tree, set->options.keeper, job->id);
	job->command = command;
	TAILQ_INSERT_TAIL(&set->running, command, link);
	if (command_launch(command, request)) {
		command_schedule(command, command->timeout_ms);
		return;
	}
	command_refused(command);
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
	command_add_usage(command, usage);
	if (command->phase == COMMAND_RUNNING && !set->stopping && launch_is_unread(command->parts)) {
		command_launch_again(command, status);
		return true;
	}
	command->leader_done = true;
	command->status = status;
	if (command->phase != COMMAND_RUNNING) {
		command_schedule(command, 0);
	} else if (command_is_oom_killed(command)) {
		/* What is left of it would be killed for, or kill, whatever comes next. */
		command->oom_killed = true;
		command_kill(command);
	} else {
		command_end(command);
	}
	return true;
}
