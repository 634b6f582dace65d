/* launch.c - gathers what spawn() needs, and words its failures. */
/* SPDX-License-Identifier: MIT */
#include "agent/launch.h"

#include "agent/config.h"
#include "agent/env.h"
#include "agent/job.h"
#include "agent/procscan.h"
#include "agent/program.h"
#include "agent/request.h"
#include "agent/spawn.h"
#include "agent/tree.h"
#include "agent/user.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { LAUNCH_NOT_EXECUTABLE = 126, LAUNCH_NOT_FOUND = 127 };

/* Everything a child needs; released as one. */
struct launch_parts {
	struct user user;
	struct env env;
	struct program program;
	int stdin_fd; /* -1: /dev/null */
	int procs_fd;
	int out[2], err[2];
};

static void
launch_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
launch_parts_fini(struct launch_parts *parts)
{
	env_fini(&parts->env);
	program_fini(&parts->program);
	launch_close(&parts->stdin_fd);
	launch_close(&parts->procs_fd);
	for (size_t i = 0; i < 2; i++) {
		launch_close(&parts->out[i]);
		launch_close(&parts->err[i]);
	}
}

/* The write end belongs to the user, who may open it again by /dev/stdout. */
static int
launch_pipe(int ends[2], const struct user *user)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		return -1;
	if (geteuid() == 0 && (user->uid != 0 || user->gid != 0))
		return fchown(ends[1], user->uid, user->gid);
	return 0;
}

static int
launch_open(const struct launch *launch, struct job *job, struct launch_parts *parts)
{
	const struct exec_request *request = launch->request;

	if (launch_pipe(parts->out, &parts->user) < 0 || launch_pipe(parts->err, &parts->user) < 0) {
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cannot make a pipe: %s", strerror(errno));
		return -1;
	}
	if (request->stdin_data != NULL) {
		parts->stdin_fd = program_memory_file(request->stdin_data, request->stdin_len);
		if (parts->stdin_fd < 0) {
			job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cannot hand over stdin: %s", strerror(errno));
			return -1;
		}
	}
	if (!tree_is_exact(launch->tree))
		return 0;
	parts->procs_fd = tree_open_procs(launch->tree);
	if (parts->procs_fd < 0) {
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cannot open the command's cgroup: %s", strerror(errno));
		return -1;
	}
	return 0;
}

static int
launch_prepare(const struct launch *launch, struct job *job, struct launch_parts *parts)
{
	const struct exec_request *request = launch->request;
	struct program_request wanted = {
		.command = request->command,
		.login_shell = request->login_shell,
		.root = "",
	};
	const char *user = request->user != NULL ? request->user : launch->config->user;
	struct err err;

	if (user_find("", user, &parts->user, &err) < 0) {
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "%s", err.msg);
		return -1;
	}
	env_build(&parts->env, launch->config->env, request->env, &parts->user);
	if (!tree_is_exact(launch->tree))
		env_set(&parts->env, PROCSCAN_MARKER, job->id);
	wanted.path = env_get(&parts->env, "PATH");
	if (program_prepare(&wanted, &parts->program, &err) < 0) {
		job_refuse(
			job, err.code == ERR_NOT_FOUND ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE, "%s", err.msg);
		return -1;
	}
	return launch_open(launch, job, parts);
}

static void
launch_refuse_cwd(const struct launch *launch, struct job *job, int errnum)
{
	const char *cwd = launch->request->cwd != NULL ? launch->request->cwd : launch->config->working_dir;

	if (errnum == ENOENT)
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cwd does not exist: %s", cwd);
	else if (errnum == ENOTDIR)
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cwd is not a directory: %s", cwd);
	else
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cwd cannot be entered: %s: %s", cwd, strerror(errnum));
}

static void
launch_refuse(const struct launch *launch, struct job *job, const char *name, enum spawn_stage stage, int errnum)
{
	const char *why = strerror(errnum);

	switch (stage) {
	case SPAWN_STARTED:
	case SPAWN_FORK:
	case SPAWN_SETUP:
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cannot start a process: %s", why);
		break;
	case SPAWN_CGROUP:
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cannot join the command's cgroup: %s", why);
		break;
	case SPAWN_USER:
		job_refuse(job, LAUNCH_NOT_EXECUTABLE, "cannot become the user: %s", why);
		break;
	case SPAWN_CWD:
		launch_refuse_cwd(launch, job, errnum);
		break;
	case SPAWN_EXEC:
		if (errnum == ENOENT || errnum == ENOTDIR)
			job_refuse(job, LAUNCH_NOT_FOUND, "%.200s: not found", name);
		else
			job_refuse(job, LAUNCH_NOT_EXECUTABLE, "%.200s: %s", name, why);
		break;
	}
}

static int
launch_spawn(const struct launch *launch, struct job *job, struct launch_parts *parts, pid_t *ret_pid)
{
	int null_fd = launch->ground->null_fd;
	int stdin_fd = parts->stdin_fd >= 0 ? parts->stdin_fd : null_fd;
	bool late_stdin = parts->program.stdin_target != 0;
	struct spawn_plan plan = {
		.ground = launch->ground,
		.paths = parts->program.paths,
		.argv = parts->program.argv,
		.envp = parts->env.list,
		.base_dir = launch->config->working_dir,
		.cwd = launch->request->cwd,
		.user = &parts->user,
		.cgroup_procs_fd = parts->procs_fd,
		.descriptors = {
			{ late_stdin ? null_fd : stdin_fd, 0 },
			{ parts->out[1], 1 },
			{ parts->err[1], 2 },
			{ parts->program.script_fd, parts->program.script_target },
			{ late_stdin ? stdin_fd : -1, parts->program.stdin_target },
		},
	};
	enum spawn_stage stage;
	int errnum;

	*ret_pid = spawn(&plan, &stage, &errnum);
	if (*ret_pid > 0)
		return 0;
	launch_refuse(launch, job, parts->program.argv[0], stage, errnum);
	return -1;
}

int
launch_command(const struct launch *launch, struct job *job, struct launched *ret_launched)
{
	struct launch_parts parts = {
		.program = { .script_fd = -1 },
		.stdin_fd = -1,
		.procs_fd = -1,
		.out = { -1, -1 },
		.err = { -1, -1 },
	};
	pid_t pid;
	int rc = -1;

	env_init(&parts.env);
	if (launch_prepare(launch, job, &parts) == 0 && launch_spawn(launch, job, &parts, &pid) == 0) {
		*ret_launched = (struct launched){
			.pid = pid,
			.out_fd = STEAL_FD(parts.out[0]),
			.err_fd = STEAL_FD(parts.err[0]),
			.tty_noise = parts.program.tty_noise,
		};
		rc = 0;
	}
	launch_parts_fini(&parts);
	return rc;
}
