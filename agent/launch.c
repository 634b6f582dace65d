/* launch.c - gathers what spawn() needs. */
/* SPDX-License-Identifier: MIT */
#include "agent/launch.h"

#include "base/alloc.h"
#include "agent/config.h"
#include "agent/env.h"
#include "agent/job.h"
#include "agent/patch/patch.h"
#include "agent/procscan.h"
#include "agent/program.h"
#include "agent/refusal.h"
#include "agent/request.h"
#include "agent/spawn.h"
#include "agent/tree.h"
#include "agent/user.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Everything a child needs; released as one. */
struct launch_parts {
	struct user user;
	char *cwd; /* NULL: the default directory */
	struct env env;
	struct program program;
	int stdin_fd; /* -1: /dev/null */
	int feed_fd; /* the other end of it; -1: none */
	int out[2], err[2];
};

static void
launch_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* What only a start needs. */
static void
launch_parts_used(struct launch_parts *parts)
{
	env_fini(&parts->env);
	program_fini(&parts->program);
	launch_close(&parts->stdin_fd);
	free(parts->cwd);
	parts->cwd = NULL;
}

static struct launch_parts *
launch_parts_create(void)
{
	struct launch_parts *parts = alloc_bytes(sizeof *parts);

	*parts = (struct launch_parts){
		.program = { .script_fd = -1 },
		.stdin_fd = -1,
		.feed_fd = -1,
		.out = { -1, -1 },
		.err = { -1, -1 },
	};
	env_init(&parts->env);
	return parts;
}

void
launch_parts_free(struct launch_parts *parts)
{
	if (parts == NULL)
		return;
	launch_parts_used(parts);
	launch_close(&parts->feed_fd);
	for (size_t i = 0; i < 2; i++) {
		launch_close(&parts->out[i]);
		launch_close(&parts->err[i]);
	}
	free(parts);
}

/* It belongs to the user, who may open his end again by /dev/stdout or /dev/stdin; ours is ends[ours]. */
static int
launch_pipe(int ends[2], int ours, const struct user *user)
{
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0)
		return -1;
	if (geteuid() == 0 && (user->uid != 0 || user->gid != 0))
		return fchown(ends[1], user->uid, user->gid);
	return 0;
}

static int
launch_open_stdin(const struct exec_request *request, struct launch_parts *parts)
{
	int ends[2] = { -1, -1 };
	int rc;

	if (request->stdin_open) {
		rc = launch_pipe(ends, 1, &parts->user);
		parts->stdin_fd = ends[0];
		parts->feed_fd = ends[1];
		return rc;
	}
	if (request->stdin_data == NULL)
		return 0;
	parts->stdin_fd = program_memory_file(request->stdin_data, request->stdin_len);
	return parts->stdin_fd < 0 ? -1 : 0;
}

static int
launch_open(const struct launch *launch, struct job *job, struct launch_parts *parts)
{
	const struct exec_request *request = launch->request;

	if (launch_pipe(parts->out, 0, &parts->user) < 0 || launch_pipe(parts->err, 0, &parts->user) < 0) {
		if (errno == EINVAL) /* of chown: the user namespace does not map it */
			job_refuse(job, REFUSAL_NOT_EXECUTABLE, "user %u:%u: the sandbox has no such ids",
				(unsigned)parts->user.uid, (unsigned)parts->user.gid);
		else
			job_refuse(job, REFUSAL_NOT_EXECUTABLE, "cannot make a pipe: %s", strerror(errno));
		return -1;
	}
	if (launch_open_stdin(request, parts) < 0) {
		job_refuse(job, REFUSAL_NOT_EXECUTABLE, "cannot hand over stdin: %s", strerror(errno));
		return -1;
	}
	return 0;
}

static int
launch_program(const struct launch *launch, struct job *job, struct launch_parts *parts)
{
	const struct exec_request *request = launch->request;
	AUTO_FREE char *cwd = NULL;
	struct program_request wanted = {
		.command = request->command,
		.login_shell = request->login_shell,
		.root = "",
		.path = env_get(&parts->env, "PATH"),
	};
	struct err err;

	if (request->apply_patch) {
		program_own(PATCH_OPTION, &parts->program);
		return 0;
	}
	if (request->cwd != NULL && request->cwd[0] != '/')
		cwd = alloc_format("%s/%s", launch->config->working_dir, request->cwd);
	wanted.cwd = cwd != NULL ? cwd : request->cwd != NULL ? request->cwd : launch->config->working_dir;
	if (program_prepare(&wanted, &parts->program, &err) == 0)
		return 0;
	job_refuse(job, err.code == ERR_NOT_FOUND ? REFUSAL_NOT_FOUND : REFUSAL_NOT_EXECUTABLE, "%s", err.msg);
	return -1;
}

static int
launch_prepare(const struct launch *launch, struct job *job, struct launch_parts *parts)
{
	const struct exec_request *request = launch->request;
	const char *user = request->user != NULL ? request->user : launch->config->user;
	struct err err;

	if (user_cache_find(launch->users, "", user, &parts->user, &err) < 0) {
		job_refuse(job, REFUSAL_NOT_EXECUTABLE, "%s", err.msg);
		return -1;
	}
	env_build(&parts->env, launch->config->env, request->env, &parts->user);
	if (!tree_is_exact(launch->tree))
		env_set(&parts->env, PROCSCAN_MARKER, job->id);
	if (request->cwd != NULL)
		parts->cwd = alloc_string(request->cwd);
	if (launch_program(launch, job, parts) < 0)
		return -1;
	return launch_open(launch, job, parts);
}

/* A login shell starts with /dev/null; the command's own three are at the numbers after the text's. */
static void
launch_descriptors(const struct launch *launch, const struct launch_parts *parts, struct spawn_plan *plan)
{
	const struct program *program = &parts->program;
	int null_fd = launch->ground->null_fd;
	int stdio[3] = { parts->stdin_fd >= 0 ? parts->stdin_fd : null_fd, parts->out[1], parts->err[1] };
	size_t count = 0;

	for (int i = 0; i < 3; i++)
		plan->descriptors[count++] = (struct spawn_descriptor){ program->login ? null_fd : stdio[i], i };
	plan->descriptors[count++] = (struct spawn_descriptor){ program->script_fd, program->script_target };
	for (int i = 0; i < 3; i++)
		plan->descriptors[count++] = (struct spawn_descriptor){ program->login ? stdio[i] : -1,
			program->script_target + 1 + i };
}

static int
launch_spawn(const struct launch *launch, struct job *job, struct launch_parts *parts, pid_t *ret_pid)
{
	struct spawn_plan plan = {
		.ground = launch->ground,
		.paths = parts->program.paths,
		.argv = parts->program.argv,
		.envp = parts->env.list,
		.base_dir = launch->config->working_dir,
		.cwd = parts->cwd,
		.user = &parts->user,
		.cgroup_fd = tree_group_fd(launch->tree),
		.cgroup_procs_fd = tree_procs_fd(launch->tree),
		.raise_score = spawn_ground_is_protected(launch->ground),
	};
	enum spawn_stage stage;
	struct err why;
	int errnum;

	launch_descriptors(launch, parts, &plan);
	spawn_ground_forget_peak(launch->ground);
	*ret_pid = spawn(&plan, &stage, &errnum);
	if (*ret_pid < 0) {
		int exit_code = refusal_of_spawn(&plan, stage, errnum, &why);

		job_refuse(job, exit_code, "%s", why.msg);
		return -1;
	}
	if (!parts->program.login)
		launch_parts_used(parts);
	return 0;
}

int
launch_command(const struct launch *launch, struct job *job, struct launched *ret_launched)
{
	struct launch_parts *parts = launch_parts_create();
	pid_t pid;

	if (launch_prepare(launch, job, parts) < 0 || launch_spawn(launch, job, parts, &pid) < 0) {
		launch_parts_free(parts);
		return -1;
	}
	*ret_launched = (struct launched){
		.pid = pid,
		.out_fd = STEAL_FD(parts->out[0]),
		.err_fd = STEAL_FD(parts->err[0]),
		.stdin_fd = STEAL_FD(parts->feed_fd),
		.parts = parts,
	};
	return 0;
}

bool
launch_is_unread(const struct launch_parts *parts)
{
	return program_is_unread(&parts->program);
}

int
launch_again(const struct launch *launch, struct launch_parts *parts, struct job *job, pid_t *ret_pid)
{
	program_drop_login(&parts->program);
	return launch_spawn(launch, job, parts, ret_pid);
}
