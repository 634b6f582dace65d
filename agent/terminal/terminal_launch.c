/* terminal_launch.c - gathers what spawn() needs; the shell is picked here. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminal_launch.h"

#include "agent/config.h"
#include "agent/env.h"
#include "agent/login.h"
#include "agent/procscan.h"
#include "agent/program.h"
#include "agent/refusal.h"
#include "agent/spawn.h"
#include "agent/terminal/terminal_request.h"
#include "agent/tree.h"
#include "agent/user.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What shells of users who must not log in are called. */
static const char *const launch_no_shells[] = { "nologin", "false", "sync", "halt", "shutdown" };

static const char *
launch_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

static bool
launch_is_shell(const char *path)
{
	struct stat st;

	for (size_t i = 0; i < sizeof launch_no_shells / sizeof launch_no_shells[0]; i++)
		if (strcmp(launch_base_name(path), launch_no_shells[i]) == 0)
			return false;
	return path[0] == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111) != 0;
}

static void
launch_add(struct json_object *list, const char *text)
{
	json_object_array_add(list, json_object_new_string(text));
}

/* Start files first, then "$@", which is the request's argv or an interactive shell. NULL: no shell in the image. */
static struct json_object *
launch_login_argv(const struct terminal_request *request)
{
	bool is_bash = false;
	const char *shell = program_find_shell("", &is_bash);
	struct json_object *list;

	if (shell == NULL)
		return NULL;
	list = json_object_new_array();
	launch_add(list, shell);
	launch_add(list, "-l");
	if (is_bash && request->cmd != NULL)
		launch_add(list, "-i"); /* else the shell that follows reads ~/.bashrc */
	launch_add(list, "-c");
	launch_add(list, is_bash && request->cmd == NULL ? "exec \"$@\"" : login_terminal_script(is_bash));
	launch_add(list, launch_base_name(shell));
	if (request->cmd == NULL) {
		launch_add(list, shell);
		launch_add(list, "-i");
	}
	for (size_t i = 0; request->cmd != NULL && i < json_object_array_length(request->cmd); i++)
		launch_add(list, json_object_get_string(json_object_array_get_idx(request->cmd, i)));
	return list;
}

static struct json_object *
launch_shell_argv(const struct user *user)
{
	bool is_bash = false;
	const char *shell = launch_is_shell(user->shell) ? user->shell : program_find_shell("", &is_bash);
	struct json_object *list;

	if (shell == NULL)
		return NULL;
	list = json_object_new_array();
	launch_add(list, shell);
	return list;
}

static int
launch_program(const struct terminal_launch *launch, const struct user *user, const struct env *env,
	struct program *ret_program, struct err *err)
{
	const struct terminal_request *request = launch->request;
	AUTO_JSON struct json_object *argv = NULL;
	struct program_request wanted = { .root = "", .path = env_get(env, "PATH") };

	if (request->login_shell)
		argv = launch_login_argv(request);
	else if (request->cmd != NULL)
		argv = json_object_get(request->cmd);
	else
		argv = launch_shell_argv(user);
	if (argv == NULL)
		return err_set(err, ERR_NOT_FOUND, "no shell in image");
	wanted.command = argv;
	return program_prepare(&wanted, ret_program, err);
}

static void
launch_env(const struct terminal_launch *launch, const struct user *user, struct env *env)
{
	env_build(env, launch->config->env, launch->request->env, user);
	if (env_get(env, "TERM") == NULL)
		env_set(env, "TERM", "xterm-256color");
	if (!tree_is_exact(launch->tree))
		env_set(env, PROCSCAN_MARKER, launch->session);
}

/* Everything a start needs; released as one. */
struct launch_parts {
	struct user user;
	struct env env;
	struct program program;
	int master, slave; /* -1: not opened, or given away */
};

static void
launch_parts_fini(struct launch_parts *parts)
{
	env_fini(&parts->env);
	program_fini(&parts->program);
	if (parts->master >= 0)
		close(parts->master);
	if (parts->slave >= 0)
		close(parts->slave);
}

static int
launch_prepare(
	const struct terminal_launch *launch, struct launch_parts *parts, int *ret_exit_code, struct err *err)
{
	const struct terminal_request *request = launch->request;
	const char *user = request->user != NULL ? request->user : launch->config->user;

	*ret_exit_code = REFUSAL_NOT_EXECUTABLE;
	if (user_cache_find(launch->users, "", user, &parts->user, err) < 0)
		return -1;
	launch_env(launch, &parts->user, &parts->env);
	if (launch_program(launch, &parts->user, &parts->env, &parts->program, err) < 0) {
		if (err->code == ERR_NOT_FOUND)
			*ret_exit_code = REFUSAL_NOT_FOUND;
		return -1;
	}
	return pty_open(&request->size, &parts->user, &parts->master, &parts->slave, err);
}

static int
launch_spawn(const struct terminal_launch *launch, const struct launch_parts *parts, pid_t *ret_pid,
	int *ret_exit_code, struct err *err)
{
	struct spawn_plan plan = {
		.ground = launch->ground,
		.paths = parts->program.paths,
		.argv = parts->program.argv,
		.envp = parts->env.list,
		.base_dir = launch->config->working_dir,
		.cwd = launch->request->cwd,
		.user = &parts->user,
		.cgroup_fd = tree_group_fd(launch->tree),
		.cgroup_procs_fd = tree_procs_fd(launch->tree),
		.raise_score = spawn_ground_is_protected(launch->ground),
		.terminal = true,
	};
	enum spawn_stage stage;
	int errnum;

	for (int i = 0; i < SPAWN_DESCRIPTORS; i++)
		plan.descriptors[i] = (struct spawn_descriptor){ i < 3 ? parts->slave : -1, i };
	spawn_ground_forget_peak(launch->ground);
	*ret_pid = spawn(&plan, &stage, &errnum);
	if (*ret_pid >= 0)
		return 0;
	*ret_exit_code = refusal_of_spawn(&plan, stage, errnum, err);
	return -1;
}

int
terminal_launch(const struct terminal_launch *launch, struct terminal_launched *ret_launched, int *ret_exit_code,
	struct err *err)
{
	struct launch_parts parts = { .program = { .script_fd = -1 }, .master = -1, .slave = -1 };
	pid_t pid = -1;
	int rc;

	env_init(&parts.env);
	rc = launch_prepare(launch, &parts, ret_exit_code, err);
	if (rc == 0)
		rc = launch_spawn(launch, &parts, &pid, ret_exit_code, err);
	if (rc == 0)
		*ret_launched = (struct terminal_launched){
			.pid = pid, .master = STEAL_FD(parts.master), .slave = STEAL_FD(parts.slave)
		};
	launch_parts_fini(&parts);
	return rc;
}
