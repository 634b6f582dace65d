/* runtime_find.c - looks the program up and asks it for its version. */
/* SPDX-License-Identifier: MIT */
#include "runtime/runtime.h"

#include "base/err.h"
#include "conf/config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ANSWER_TIMEOUT_MS = 20000, ANSWER_MAX = 1024 };

static const struct {
	const char *name;
	int major, minor; /* the oldest that is known to work */
} known[] = {
	[RUNTIME_BUILTIN] = { "builtin", 0, 0 },
	[RUNTIME_CRUN] = { "crun", 1, 8 },
	[RUNTIME_RUNC] = { "runc", 1, 1 },
};

static const char standard_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static bool
is_program(const char *dir, size_t len, const char *name, char *buf, size_t size)
{
	return (size_t)snprintf(buf, size, "%.*s/%s", (int)len, dir, name) < size && access(buf, X_OK) == 0;
}

static int
look_up(const struct config *config, struct runtime *runtime, struct err *err)
{
	const char *want = config->local_runtime_path, *dir = getenv("PATH");

	if (want[0] == '/') {
		if (is_program("", 0, want + 1, runtime->path, sizeof runtime->path))
			return 0;
		return err_set(err, ERR_INVALID, "local_runtime_path names %.200s, which is no program (%s)", want,
			strerror(errno));
	}
	for (dir = dir != NULL ? dir : standard_path; *dir != '\0'; dir += *dir == ':') {
		size_t len = strcspn(dir, ":");

		if (dir[0] == '/' && is_program(dir, len, runtime->name, runtime->path, sizeof runtime->path))
			return 0;
		dir += len;
	}
	return err_set(err, ERR_INVALID,
		"local_runtime is %s, but there is no such program: apt-get install %s, or set local_runtime_path, "
		"or local_runtime = \"builtin\"",
		runtime->name, runtime->name);
}

static size_t
read_answer(int fd, char *buf, size_t size)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len + 1 < size && poll(&poll_fd, 1, ANSWER_TIMEOUT_MS) > 0) {
		ssize_t n = read(fd, buf + len, size - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	buf[len] = '\0';
	return len;
}

/* What `PROGRAM --version` says; "" when it says nothing. */
static void
ask_version(const char *path, char *buf, size_t size)
{
	char *const argv[] = { (char[]){ "runtime" }, (char[]){ "--version" }, NULL }, *const envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;
	int ends[2];

	buf[0] = '\0';
	if (pipe2(ends, O_CLOEXEC) != 0)
		return;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	if (posix_spawn(&pid, path, &actions, NULL, argv, envp) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (pid > 0)
		(void)read_answer(ends[0], buf, size);
	close(ends[0]);
	if (pid <= 0)
		return;
	(void)kill(pid, SIGKILL); /* it has said what it had to say */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int
check_version(const struct runtime *runtime, struct err *err)
{
	const int need_major = known[runtime->kind].major, need_minor = known[runtime->kind].minor;
	char answer[ANSWER_MAX];
	const char *at;
	int major = 0, minor = 0;

	ask_version(runtime->path, answer, sizeof answer);
	at = strstr(answer, "version ");
	if (at == NULL || strncmp(answer, runtime->name, strlen(runtime->name)) != 0 ||
		sscanf(at, "version %d.%d", &major, &minor) != 2)
		return err_set(err, ERR_INVALID,
			"%.200s does not say that it is %s (%s --version): name another program in "
			"local_runtime_path",
			runtime->path, runtime->name, runtime->name);
	if (major > need_major || (major == need_major && minor >= need_minor))
		return 0;
	return err_set(err, ERR_INVALID,
		"%.200s is version %d.%d, local_runtime = \"%s\" needs %d.%d or newer: apt-get install %s, or name "
		"a "
		"newer one in local_runtime_path",
		runtime->path, major, minor, runtime->name, need_major, need_minor, runtime->name);
}

int
runtime_find(const struct config *config, struct runtime *ret_runtime, struct err *err)
{
	size_t kind = 0;

	while (kind < sizeof known / sizeof *known && strcmp(config->local_runtime, known[kind].name) != 0)
		kind++;
	if (kind == sizeof known / sizeof *known)
		return err_set(err, ERR_INVALID, "'%.60s' is no local_runtime", config->local_runtime);
	*ret_runtime = (struct runtime){ .kind = (enum runtime_kind)kind, .name = known[kind].name };
	if (kind == RUNTIME_BUILTIN)
		return 0;
	return look_up(config, ret_runtime, err) != 0 ? -1 : check_version(ret_runtime, err);
}
