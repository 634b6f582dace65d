/* tool.c - one child in a process group of its own; signals are waited for, never handled. */
/* SPDX-License-Identifier: MIT */
#include "agent/patch/tool.h"

#include "agent/env.h"
#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { TOOL_NOT_EXECUTABLE = 126 };

static sigset_t tool_signals, tool_mask;

void
patch_block_signals(void)
{
	sigemptyset(&tool_signals);
	sigaddset(&tool_signals, SIGTERM);
	sigaddset(&tool_signals, SIGINT);
	sigaddset(&tool_signals, SIGHUP);
	sigaddset(&tool_signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &tool_signals, &tool_mask);
}

bool
patch_is_asked(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1 ||
		sigismember(&pending, SIGHUP) == 1;
}

static char *
tool_search(const char *name)
{
	const char *path = getenv("PATH");
	struct stat st;

	if (path == NULL)
		path = ENV_DEFAULT_PATH;
	for (;; path++) {
		size_t len = strcspn(path, ":");
		AUTO_FREE char *file = alloc_format("%.*s%s%s", (int)len, path, len > 0 ? "/" : "./", name);

		if (stat(file, &st) == 0 && S_ISREG(st.st_mode) && access(file, X_OK) == 0)
			return STEAL_PTR(file);
		path += len;
		if (*path == '\0')
			return NULL;
	}
}

static void
tool_environment(const struct patch_tool *tool, const struct patch_run *run, struct env *env)
{
	struct stat st;

	env_init(env);
	for (char **text = environ; *text != NULL; text++)
		if (strncmp(*text, "GIT_", 4) != 0 && strncmp(*text, "PATCH_", 6) != 0 &&
			strncmp(*text, "POSIXLY_CORRECT=", 16) != 0)
			env_set_text(env, *text);
	if (run->temp_dir != NULL)
		env_set(env, "TMPDIR", run->temp_dir);
	env_set(env, "LC_ALL", "C"); /* its words are read, here and by the server */
	if (!tool->is_git)
		return;
	env_set(env, "GIT_CONFIG_NOSYSTEM", "1");
	env_set(env, "GIT_CONFIG_GLOBAL", "/dev/null");
	/* For a git that does not know the last one. */
	env_set(env, "HOME", "/dev/null");
	env_set(env, "XDG_CONFIG_HOME", "/dev/null");
	if (lstat(".git", &st) < 0) {
		env_set(env, "GIT_DIR", "/dev/null");
		return;
	}
	env_set(env, "GIT_DIR", ".git");
	env_set(env, "GIT_WORK_TREE", ".");
}

static char *const *
tool_arguments(const struct patch_tool *tool)
{
	static const char *const git[] = { "git", "-c", "apply.whitespace=warn", "-c", "apply.ignoreWhitespace=no",
		"apply", "--numstat", "-z", "--apply", "-p1", "-", NULL };
	static const char *const gnu[] = { "patch", "-p1", "--unified", "--force", "--fuzz=0", "--binary",
		"--no-backup-if-mismatch", "--reject-file=-", NULL };
	static const char *const other[] = { "patch", "-p1", NULL };

	/* execve() takes pointers to what it does not change. */
	return (char *const *)(uintptr_t)(tool->is_git ? git : tool->is_gnu ? gnu : other);
}

static void __attribute__((noreturn))
tool_child(const struct patch_tool *tool, char *const *argv, char *const *envp, const struct patch_run *run)
{
	setpgid(0, 0);
	sigprocmask(SIG_SETMASK, &tool_mask, NULL);
	if (dup2(run->patch_fd, 0) < 0 || dup2(run->out_fd, 1) < 0 || dup2(run->err_fd, 2) < 0)
		_exit(TOOL_NOT_EXECUTABLE);
	execve(tool->path, argv, envp);
	dprintf(2, "error: %s: %s\n", tool->path, strerror(errno));
	_exit(TOOL_NOT_EXECUTABLE);
}

/* True: *ret_code is its exit code. False: we are asked to stop, and it is dead. */
static bool
tool_wait(pid_t pid, int *ret_code)
{
	int status, sig;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (sigwait(&tool_signals, &sig) != 0 || sig == SIGCHLD)
			continue;
		raise(sig); /* patch_is_asked() goes on saying so */
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		return false;
	}
	kill(-pid, SIGKILL); /* what it left behind may still write */
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return true;
}

static int
tool_spawn(const struct patch_tool *tool, char *const *argv, struct patch_run *run)
{
	struct env env;
	int code = TOOL_NOT_EXECUTABLE;
	pid_t pid;

	run->out_fd = memfd_create("stdout", MFD_CLOEXEC);
	run->err_fd = memfd_create("stderr", MFD_CLOEXEC);
	if (run->out_fd < 0 || run->err_fd < 0 || lseek(run->patch_fd, 0, SEEK_SET) < 0)
		return code;
	tool_environment(tool, run, &env);
	pid = fork();
	if (pid == 0)
		tool_child(tool, argv, env.list, run);
	if (pid > 0 && !tool_wait(pid, &code))
		code = -1;
	else if (pid < 0)
		dprintf(run->err_fd, "error: cannot start a process: %s\n", strerror(errno));
	env_fini(&env);
	lseek(run->out_fd, 0, SEEK_SET);
	lseek(run->err_fd, 0, SEEK_SET);
	return code;
}

int
patch_tool_run(const struct patch_tool *tool, struct patch_run *run)
{
	return tool_spawn(tool, tool_arguments(tool), run);
}

static bool
tool_is_gnu(const struct patch_tool *tool)
{
	static const char *const version[] = { "patch", "--version", NULL };
	AUTO_FD null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct patch_run run = { .patch_fd = null_fd };
	char head[9] = { 0 };
	bool is_gnu;

	is_gnu = null_fd >= 0 && tool_spawn(tool, (char *const *)(uintptr_t)version, &run) == 0 &&
		read(run.out_fd, head, sizeof head) == (ssize_t)sizeof head && memcmp(head, "GNU patch", 9) == 0;
	close(run.out_fd);
	close(run.err_fd);
	return is_gnu;
}

bool
patch_tool_find(struct patch_tool *ret_tool)
{
	struct patch_tool tool = { .path = tool_search("git"), .is_git = true };

	if (tool.path == NULL) {
		tool = (struct patch_tool){ .path = tool_search("patch") };
		if (tool.path == NULL)
			return false;
		tool.is_gnu = tool_is_gnu(&tool);
	}
	*ret_tool = tool;
	return true;
}
