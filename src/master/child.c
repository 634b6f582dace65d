/*
 * child.c - from fork to the role's main.
 *
 * Children have a process group of their own: what a terminal sends (Ctrl-C) reaches
 * the master alone, which tells the others in the right order.
 */
/* SPDX-License-Identifier: MIT */
#include "master/child.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "master/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

const char *
child_role_name(enum proc_role role)
{
	switch (role) {
	case PROC_MASTER:
		return "master";
	case PROC_WORKER:
		return "worker";
	case PROC_REAPER:
		return "reaper";
	case PROC_SPAWNER:
		return "spawner";
	case PROC_GATEWAY:
		return "gateway";
	case PROC_CONTROLLER:
		return "controller";
	case PROC_ROLES:
	case PROC_NONE:
		break;
	}
	return "process";
}

bool
child_makes_sandboxes(enum proc_role role)
{
	return role == PROC_SPAWNER || role == PROC_CONTROLLER;
}

static void
become_separate(const struct child_plan *plan, const char *name)
{
	enum log_level level = LOG_LEVEL_INFO;
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	char title[16];
	sigset_t none;

	setpgid(0, 0);
	snprintf(title, sizeof title, "orchard-%s", name);
	prctl(PR_SET_NAME, title, 0, 0, 0);
	sigaction(SIGPIPE, &ignore, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (plan->role->role != PROC_WORKER)
		config_forget_keys(plan->config);
	if (log_level_parse(plan->config->log_level, &level) == 0)
		log_init(name, level);
}

static void
close_foreign(const struct child_plan *plan)
{
	const struct child_share *share = plan->share;

	close(share->signal_fd);
	close(share->alive_write_fd);
	if (plan->role->role != PROC_WORKER && share->listen_fd >= 0)
		close(share->listen_fd);
	if (!child_makes_sandboxes(plan->role->role) && share->spawner_fd >= 0)
		close(share->spawner_fd);
	if (plan->role->role != PROC_WORKER)
		close(share->terminal_fds[0]);
	if (plan->role->role != PROC_GATEWAY)
		close(share->terminal_fds[1]);
	for (size_t i = 0; i < plan->foreign_count; i++)
		close(plan->foreign_fds[i]);
}

static int
terminal_end_of(const struct child_share *share, enum proc_role role)
{
	if (role == PROC_WORKER)
		return share->terminal_fds[0];
	return role == PROC_GATEWAY ? share->terminal_fds[1] : -1;
}

_Noreturn static void
child_main(const struct child_plan *plan, struct proc_ref self, int ready_fd)
{
	const struct child_share *share = plan->share;
	enum proc_role role = plan->role->role;
	struct role_env env = {
		.config = plan->config,
		.shm = share->shm,
		.notify = share->notify,
		.self = self,
		.listen_fd = role == PROC_WORKER ? share->listen_fd : -1,
		.spawner_fd = child_makes_sandboxes(role) ? share->spawner_fd : -1,
		.terminal_fd = terminal_end_of(share, role),
		.ready_fd = ready_fd,
		.alive_fd = share->alive_read_fd,
	};
	struct err err;

	close_foreign(plan);
	become_separate(plan, child_role_name(role));
	if (role != PROC_SPAWNER &&
		privileges_drop(share->user, role == PROC_CONTROLLER ? PRIVILEGES_RUN_PROGRAMS : 0, &err) < 0) {
		role_failed(&env, &err);
		exit(ROLE_EXIT_HOPELESS);
	}
	exit(plan->role->main(&env));
}

int
child_start(const struct child_plan *plan, struct child *ret_child, struct err *err)
{
	struct shm_scoreboard *board = shm_scoreboard(plan->share->shm);
	struct proc_ref ref;
	int pipefd[2];
	pid_t pid;

	if (scoreboard_claim(board, plan->role->role, &ref, err) < 0)
		return err_prefix(err, "no place for another process, earlier ones still drain");
	scoreboard_set_restarts(board, ref, plan->restarts);
	if (pipe2(pipefd, O_CLOEXEC) < 0) {
		scoreboard_retire(board, ref);
		return err_set_errno(err, errno, "no pipe for a new %s", child_role_name(plan->role->role));
	}
	pid = fork();
	if (pid < 0) {
		int errnum = errno;

		close(pipefd[0]);
		close(pipefd[1]);
		scoreboard_retire(board, ref);
		return err_set_errno(err, errnum, "cannot fork a %s", child_role_name(plan->role->role));
	}
	if (pid == 0) {
		close(pipefd[0]);
		child_main(plan, ref, pipefd[1]);
	}
	close(pipefd[1]);
	fcntl(pipefd[0], F_SETFL, O_NONBLOCK);
	scoreboard_set_pid(board, ref, pid, proc_start_time(pid));
	*ret_child = (struct child){ .pid = pid, .ref = ref, .ready_fd = pipefd[0], .started_ms = clock_boot_ms() };
	return 0;
}

bool
child_listen(struct child *child)
{
	ssize_t n = 0;

	while (child->ready_fd >= 0) {
		size_t room = sizeof child->said - 1 - child->said_len;

		/* Never more than a sentence: more is no start report. */
		n = room > 0 ? read(child->ready_fd, child->said + child->said_len, room) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n > 0) {
			child->said_len += (size_t)n;
			continue;
		}
		close(child->ready_fd);
		child->ready_fd = -1;
	}
	if (child->ready || child->said_len == 0 || child->said[0] != 'R')
		return false;
	child->ready = true;
	return true;
}

const char *
child_complaint(struct child *child)
{
	if (child->said_len == 0 || child->said[0] != 'E' || child->ready_fd >= 0)
		return NULL;
	child->said[child->said_len] = '\0';
	return child->said + 1;
}

void
child_forget(struct child *child)
{
	if (child->ready_fd >= 0)
		close(child->ready_fd);
	*child = (struct child){ .ready_fd = -1 };
}
