/* puller.c - one run of skopeo: started, listened to, ended. */
/* SPDX-License-Identifier: MIT */
#include "image/puller.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/fork.h"
#include "base/log.h"
#include "conf/config.h"
#include "image/oci_blob.h"
#include "image/pull_cage.h"
#include "image/pull_words.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { TICK_MS = 200, AUTH_MAX = 1 << 20, OPTIONS_MAX = 64, ARGS_MAX = 96, TAIL_SIZE = 4096 };

/* What a run says. */
struct hearing {
	char *out;
	size_t out_len;
	char tail[TAIL_SIZE]; /* the end of its stderr */
	size_t tail_len;
};

void
puller_init(struct puller *puller)
{
	*puller = (struct puller){ .net_fd = -1, .auth_fd = -1, .work_fd = -1 };
}

/* A copy in memory, so that the file itself can stay root's alone. */
static int
copy_auth(struct puller *puller, struct err *err)
{
	AUTO_SECRET char *text = NULL;
	size_t len;

	if (puller->config->image_auth_file[0] == '\0')
		return 0;
	if (file_read_at(AT_FDCWD, puller->config->image_auth_file, AUTH_MAX, &text, &len, err) != 0)
		return err_prefix(err, "image_auth_file");
	puller->auth_fd = memfd_create("auth", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (puller->auth_fd < 0 || file_write_all(puller->auth_fd, text, len) != 0 ||
		file_seal(puller->auth_fd) != 0)
		return err_set_errno(err, errno, "image_auth_file");
	return 0;
}

int
puller_open(struct puller *puller, const struct config *config, struct err *err)
{
	const struct passwd *pw;

	puller->config = config;
	puller->deadline_ms = clock_boot_ms() + config->image_pull_timeout_seconds * 1000;
	errno = 0;
	pw = getpwnam(config->image_pull_user);
	if (pw == NULL || pw->pw_uid == 0)
		return err_set(err, ERR_UNSUPPORTED,
			"image_pull_user \"%s\" is no user without rights: create it, or name another one",
			config->image_pull_user);
	puller->uid = pw->pw_uid;
	puller->gid = pw->pw_gid;
	puller->net_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (puller->net_fd < 0)
		return err_set_errno(err, errno, "network of the host");
	return copy_auth(puller, err);
}

void
puller_close(struct puller *puller)
{
	cleanup_fd(&puller->net_fd);
	cleanup_fd(&puller->auth_fd);
	cleanup_fd(&puller->work_fd);
	puller_init(puller);
}

/* Not a plain fork: as the first process of its own namespace it takes along whatever it has started. */
static pid_t
fork_apart(void)
{
	struct clone_args args = { .flags = CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS, .exit_signal = SIGCHLD };

	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* The program, its options, the subcommand, the credentials, the rest. */
static void
make_argv(const struct puller *puller, const struct puller_job *job, char *argv[ARGS_MAX])
{
	const struct config_list *options = &puller->config->image_skopeo_args;
	size_t n = 0;

	argv[n++] = alloc_string(puller->config->image_skopeo_path);
	for (size_t i = 0; i < options->count && i < OPTIONS_MAX; i++)
		argv[n++] = alloc_string(options->items[i]);
	argv[n++] = alloc_string(job->args[0]);
	if (puller->auth_fd >= 0) {
		argv[n++] = alloc_string("--authfile");
		argv[n++] = alloc_string(PULL_AUTH_PATH);
	}
	for (size_t i = 1; job->args[i] != NULL && n + 1 < ARGS_MAX; i++)
		argv[n++] = alloc_string(job->args[i]);
	argv[n] = NULL;
}

static _Noreturn void
run_child(const struct puller *puller, const struct puller_job *job, int out_fd, int err_fd)
{
	int kept[] = { puller->net_fd, puller->auth_fd, puller->work_fd, out_fd, err_fd };
	char *argv[ARGS_MAX];
	struct err err;

	fork_keep_only(kept, sizeof kept / sizeof *kept);
	make_argv(puller, job, argv);
	pull_cage_exec(puller, job->file_max, argv, out_fd, err_fd, &err);
	(void)!write(err_fd, err.msg, strlen(err.msg));
	_exit(PULL_CAGE_FAILED);
}

static int
make_pipe(int *ret_read, int *ret_write, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_set_errno(err, errno, "pipe of skopeo");
	*ret_read = ends[0];
	*ret_write = ends[1];
	return 0;
}

/* Keeps the end of what comes; the reason of a failure stands in the last line. */
static void
keep_tail(struct hearing *heard, const char *data, size_t len)
{
	size_t keep = heard->tail_len;

	if (len >= sizeof heard->tail) {
		data += len - (sizeof heard->tail - 1);
		len = sizeof heard->tail - 1;
	}
	if (keep + len >= sizeof heard->tail)
		keep = sizeof heard->tail - 1 - len;
	memmove(heard->tail, heard->tail + heard->tail_len - keep, keep);
	memcpy(heard->tail + keep, data, len);
	heard->tail_len = keep + len;
	heard->tail[heard->tail_len] = '\0';
}

/* False at the end of that pipe. */
static bool
hear(int fd, bool is_out, struct hearing *heard)
{
	char data[16384];
	ssize_t n = read(fd, data, sizeof data);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n > 0 && !is_out)
		keep_tail(heard, data, (size_t)n);
	if (n > 0 && is_out && heard->out_len + (size_t)n <= OCI_JSON_MAX) {
		heard->out = must_alloc(realloc(heard->out, heard->out_len + (size_t)n + 1));
		memcpy(heard->out + heard->out_len, data, (size_t)n);
		heard->out_len += (size_t)n;
		heard->out[heard->out_len] = '\0';
	} else if (n > 0 && is_out) {
		return false; /* it gets no further with that */
	}
	return n > 0;
}

/* Until both pipes have ended; ERR_TIMEOUT at the deadline. */
static int
listen_to(const struct puller *puller, const struct puller_job *job, int out_fd, int err_fd, struct hearing *heard,
	struct err *err)
{
	struct pollfd polls[2] = { { .fd = out_fd, .events = POLLIN }, { .fd = err_fd, .events = POLLIN } };

	while (polls[0].fd >= 0 || polls[1].fd >= 0) {
		int64_t left = puller->deadline_ms - clock_boot_ms();

		if (left <= 0)
			return err_set(err, ERR_TIMEOUT,
				"the image did not come within image_pull_timeout_seconds (%lld)",
				(long long)puller->config->image_pull_timeout_seconds);
		if (poll(polls, 2, (int)(left < TICK_MS ? left : TICK_MS)) < 0 && errno != EINTR)
			return err_set_errno(err, errno, "poll");
		for (int i = 0; i < 2; i++) {
			if (polls[i].fd >= 0 && polls[i].revents != 0 && !hear(polls[i].fd, i == 0, heard))
				polls[i].fd = -1;
			polls[i].revents = 0;
		}
		if (job->tick != NULL)
			job->tick(job->arg);
	}
	return 0;
}

static int
judge(const struct puller *puller, int status, const struct hearing *heard, struct err *err)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == PULL_CAGE_FAILED)
		return err_set(err, ERR_UNSUPPORTED, "%s", heard->tail);
	if (WIFSIGNALED(status) && heard->tail_len == 0)
		return err_set(err, ERR_UNAVAILABLE, "%s was killed by signal %d (is there memory enough?)",
			puller->config->image_skopeo_path, WTERMSIG(status));
	return pull_words(heard->tail, err);
}

int
puller_run(struct puller *puller, const struct puller_job *job, char **ret_out, size_t *ret_len, struct err *err)
{
	AUTO_FD out_read = -1;
	AUTO_FD out_write = -1;
	AUTO_FD err_read = -1;
	AUTO_FD err_write = -1;
	struct hearing heard = { 0 };
	int rc, status = 0;
	pid_t pid;

	if (make_pipe(&out_read, &out_write, err) != 0 || make_pipe(&err_read, &err_write, err) != 0)
		return -1;
	pid = fork_apart();
	if (pid == 0)
		run_child(puller, job, out_write, err_write);
	if (pid < 0)
		return err_set_errno(err, errno, "fork of skopeo");
	close(STEAL_FD(out_write));
	close(STEAL_FD(err_write));
	rc = listen_to(puller, job, out_read, err_read, &heard, err);
	if (rc != 0)
		(void)kill(pid, SIGKILL);
	close(STEAL_FD(out_read)); /* what still writes to it, ends */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (rc == 0)
		rc = judge(puller, status, &heard, err);
	if (rc != 0 && heard.tail_len > 0)
		log_debug("skopeo: %s", heard.tail);
	*ret_out = rc == 0 && heard.out == NULL ? must_alloc(calloc(1, 1)) : heard.out;
	*ret_len = heard.out_len;
	if (rc != 0) {
		free(heard.out);
		*ret_out = NULL;
	}
	return rc;
}
