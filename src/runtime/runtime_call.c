/* runtime_call.c - forks, prepares, executes, waits, and finds the reason of a failure in the program's log. */
/* SPDX-License-Identifier: MIT */
#include "runtime/runtime_call.h"

#include "base/err.h"
#include "base/file.h"
#include "base/json.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUN_TIMEOUT_MS = 60000, LOG_MAX = 256 * 1024, ARGS_MAX = 24, FREE_FD = 64 };

struct words {
	char *argv[ARGS_MAX];
	size_t count, used;
	char text[4 * PATH_MAX];
};

static void push(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
push(struct words *words, const char *format, ...)
{
	char *at = words->text + words->used;
	size_t room = sizeof words->text - words->used;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(at, room, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= room || words->count + 1 >= ARGS_MAX)
		abort(); /* dir is the longest of them, and a path */
	words->used += (size_t)len + 1;
	words->argv[words->count++] = at;
}

static void
fill_words(const struct runtime_call *call, bool create, struct words *words)
{
	push(words, "%s", call->runtime->path);
	push(words, "--root=%s/state", call->dir);
	push(words, "--log=%s/log", call->dir);
	push(words, "--log-format=json");
	if (call->runtime->kind == RUNTIME_CRUN)
		push(words, "--cgroup-manager=cgroupfs");
	push(words, create ? "create" : "start");
	if (create) {
		push(words, "--pid-file=%s/pid", call->dir);
		push(words, "--bundle=%s", call->dir);
		push(words, "--preserve-fds=%zu", call->fd_count);
	}
	push(words, "%s", call->name);
}

/* Everything else is closed by the exec; what is put in place stays. */
static int
place_descriptors(const struct runtime_call *call)
{
	int high[RUNTIME_FDS_MAX], null = fcntl(call->null_fd, F_DUPFD_CLOEXEC, FREE_FD);

	for (size_t i = 0; i < call->fd_count; i++) {
		high[i] = fcntl(call->fds[i] >= 0 ? call->fds[i] : null, F_DUPFD_CLOEXEC, FREE_FD);
		if (high[i] < 0)
			return -1;
	}
	if (null < 0 || syscall(SYS_close_range, RUNTIME_FIRST_FD, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */) != 0)
		return -1;
	for (int i = 0; i < RUNTIME_FIRST_FD; i++) {
		if (dup2(null, i) < 0)
			return -1;
	}
	for (size_t i = 0; i < call->fd_count; i++) {
		if (dup2(high[i], RUNTIME_FIRST_FD + (int)i) < 0)
			return -1;
	}
	return 0;
}

/* Never returns; the reason of a failure goes through the pipe, which an exec closes. */
static _Noreturn void
run_child(const struct runtime_call *call, char *const argv[], int report_fd, pid_t parent)
{
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char *const envp[] = { path, NULL };
	struct err err;
	int report = fcntl(report_fd, F_DUPFD_CLOEXEC, FREE_FD);

	if (report < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0 || getppid() != parent)
		_exit(1);
	(void)signal(SIGPIPE, SIG_DFL);
	if (call->prepare == NULL || call->prepare(call->arg, &err) == 0) {
		if (place_descriptors(call) != 0) {
			err_set_errno(&err, errno, "place descriptors");
		} else {
			execve(call->runtime->path, argv, envp);
			err_set_errno(&err, errno, "execute %s", call->runtime->path);
		}
	}
	(void)!write(report, &err, sizeof err);
	_exit(1);
}

/* The last error in the log, which holds one JSON object a line. */
static bool
find_words(int dir_fd, char *buf, size_t size)
{
	AUTO_FREE char *text = NULL;
	char *save = NULL;
	struct err err;
	size_t len;
	bool found = false;

	if (file_read_at(dir_fd, "log", LOG_MAX, &text, &len, &err) != 0)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		AUTO_JSON struct json_object *object = json_parse(line, strlen(line), &err);
		struct json_object *level, *msg;

		if (object == NULL || !json_object_object_get_ex(object, "level", &level) ||
			strcmp(json_object_get_string(level), "error") != 0 ||
			!json_object_object_get_ex(object, "msg", &msg))
			continue;
		snprintf(buf, size, "%s", json_object_get_string(msg));
		found = true;
	}
	return found;
}

static int
judge(const struct runtime_call *call, const char *step, int status, struct err *err)
{
	const char *name = call->runtime->name;
	char words[400];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFSIGNALED(status))
		return err_set(err, ERR_INTERNAL, "%s %s was killed by signal %d (is there memory enough?)", name,
			step, WTERMSIG(status));
	if (find_words(call->dir_fd, words, sizeof words))
		return err_set(err, ERR_INTERNAL, "%s: %s", name, words);
	return err_set(err, ERR_INTERNAL, "%s %s ended with status %d and no word in its log", name, step,
		WEXITSTATUS(status));
}

/* 1: it was executed; else what happened before. */
static int
read_report(int fd, struct err *err)
{
	ssize_t n;

	do
		n = read(fd, err, sizeof *err);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof *err ? -1 : 1;
}

/* Its end, or SIGKILL at the deadline. */
static int
wait_for(pid_t pid, const struct runtime_call *call, const char *step, struct err *err)
{
	struct pollfd end = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int patience_ms = call->patience_ms > 0 ? call->patience_ms : RUN_TIMEOUT_MS;
	bool late = false;
	int status = 0;

	if (end.fd >= 0) {
		int rc;

		do
			rc = poll(&end, 1, patience_ms);
		while (rc < 0 && errno == EINTR);
		late = rc == 0;
		close(end.fd);
	}
	if (late)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (late)
		return err_set(err, ERR_TIMEOUT, "%s %s did not end within %g s (%s)", call->runtime->name, step,
			patience_ms / 1000.0, call->runtime->path);
	return judge(call, step, status, err);
}

static int
run(const struct runtime_call *call, bool create, struct err *err)
{
	const char *step = create ? "create" : "start";
	struct words *words = calloc(1, sizeof *words);
	pid_t pid, parent = getpid();
	int ends[2], rc;

	if (words == NULL)
		abort();
	fill_words(call, create, words);
	if (pipe2(ends, O_CLOEXEC) != 0) {
		free(words);
		return err_set_errno(err, errno, "pipe");
	}
	pid = fork();
	if (pid == 0)
		run_child(call, words->argv, ends[1], parent);
	free(words);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_set_errno(err, errno, "fork of %s", call->runtime->name);
	}
	rc = read_report(ends[0], err);
	close(ends[0]);
	if (rc > 0)
		return wait_for(pid, call, step, err);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -1;
}

int
runtime_create(const struct runtime_call *call, pid_t *ret_pid, struct err *err)
{
	AUTO_FREE char *text = NULL;
	long pid;
	size_t len;

	if (call->fd_count > RUNTIME_FDS_MAX)
		return err_set(err, ERR_INTERNAL, "too many descriptors for PID 1");
	if (run(call, true, err) != 0 || file_read_at(call->dir_fd, "pid", 32, &text, &len, err) != 0)
		return -1;
	pid = strtol(text, NULL, 10);
	if (pid <= 1 || pid > INT_MAX)
		return err_set(err, ERR_INTERNAL, "%s tells no process", call->runtime->name);
	*ret_pid = (pid_t)pid;
	return 0;
}

int
runtime_start(const struct runtime_call *call, struct err *err)
{
	struct runtime_call plain = *call;

	plain.fds = NULL;
	plain.fd_count = 0;
	plain.prepare = NULL;
	return run(&plain, false, err);
}
