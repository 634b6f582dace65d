/*
 * kube_program.c - a child with pipes for stdout and stderr, a deadline, and an end that is a pidfd's.
 *
 * It is over when it has ended, not when its pipes are closed: a child of its own may keep them. stdout is then read
 * as far as it is there.
 */
/* SPDX-License-Identifier: MIT */
#include "kube/kube_program.h"
#include "kube/kube_config_impl.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <event2/event.h>

enum { OUTPUT_MAX = 1 << 20, WORDS_MAX = 4096, READ_PIECE = 4096 };

struct channel {
	int fd;
	struct event *event;
	char *text; /* with a NUL behind */
	size_t len, max;
};

struct kube_program {
	const struct kube_plugin *plugin;
	pid_t pid;
	struct channel output, words;
	int pid_fd;
	struct event *end, *deadline;
	uint32_t timeout_ms;
	kube_program_f *done;
	void *arg;
};

static void
channel_fini(struct channel *channel)
{
	if (channel->event != NULL)
		event_free(channel->event);
	if (channel->fd >= 0)
		close(channel->fd);
	cleanup_secret(&channel->text);
}

static void
program_free(struct kube_program *program)
{
	channel_fini(&program->output);
	channel_fini(&program->words);
	if (program->end != NULL)
		event_free(program->end);
	if (program->deadline != NULL)
		event_free(program->deadline);
	if (program->pid_fd >= 0)
		close(program->pid_fd);
	free(program);
}

void
kube_program_kill(struct kube_program *program)
{
	(void)kill(-program->pid, SIGKILL);
	while (waitpid(program->pid, NULL, 0) < 0 && errno == EINTR)
		;
	program_free(program);
}

/* False: nothing more comes. What is beyond max is read and dropped. */
static bool
channel_read(struct channel *channel)
{
	char piece[READ_PIECE];
	ssize_t n = read(channel->fd, piece, sizeof piece);
	size_t take;

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	take = (size_t)n < channel->max - channel->len ? (size_t)n : channel->max - channel->len;
	memcpy(channel->text + channel->len, piece, take);
	channel->len += take;
	channel->text[channel->len] = '\0';
	explicit_bzero(piece, sizeof piece);
	return true;
}

static void
channel_on_input(evutil_socket_t fd, short what, void *arg)
{
	struct channel *channel = arg;

	(void)fd;
	(void)what;
	if (!channel_read(channel))
		event_del(channel->event);
}

static void
channel_rest(struct channel *channel)
{
	size_t before;

	do
		before = channel->len;
	while (channel_read(channel) && channel->len > before);
}

static int
program_judge(struct kube_program *program, int status, struct err *err)
{
	const char *hint = program->plugin->hint, *words = program->words.text;

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && program->output.len < OUTPUT_MAX)
		return 0;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return err_set(
			err, ERR_INVALID, "%s printed more than %d bytes", program->plugin->command, OUTPUT_MAX);
	if (WIFSIGNALED(status))
		return err_set(err, ERR_UNAVAILABLE, "%s was killed by signal %d", program->plugin->command,
			WTERMSIG(status));
	return err_set(err, ERR_UNAVAILABLE, "%s ended with status %d%s%.300s%s%.100s", program->plugin->command,
		WEXITSTATUS(status), words[0] != '\0' ? ": " : "", words, hint[0] != '\0' ? "; " : "", hint);
}

static void
program_on_end(evutil_socket_t fd, short what, void *arg)
{
	struct kube_program *program = arg;
	struct err err;
	int status = 0, result;

	(void)fd;
	(void)what;
	while (waitpid(program->pid, &status, 0) < 0 && errno == EINTR)
		;
	channel_rest(&program->output);
	channel_rest(&program->words);
	(void)kill(-program->pid, SIGKILL);
	result = program_judge(program, status, &err);
	program->done(program->output.text, program->output.len, result == 0 ? NULL : &err, program->arg);
	program_free(program);
}

static void
program_on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct kube_program *program = arg;
	kube_program_f *done = program->done;
	struct err err;

	(void)fd;
	(void)what;
	arg = program->arg;
	err_set(&err, ERR_TIMEOUT, "%s did not end within %u ms", program->plugin->command, program->timeout_ms);
	kube_program_kill(program);
	done(NULL, 0, &err, arg);
}

/* Our environment, what the plugin adds to it, and what it is told; entries are borrowed. */
static char **
program_env(const struct kube_plugin *plugin)
{
	size_t count = 0, added = 0, used = 0;
	char **env;

	while (environ[count] != NULL)
		count++;
	while (plugin->env[added] != NULL)
		added++;
	env = alloc_zero(count + added + 2, sizeof *env);
	env[used++] = plugin->info;
	for (size_t i = 0; i < added; i++)
		env[used++] = plugin->env[i];
	for (size_t i = 0; i < count; i++) {
		const char *end = strchr(environ[i], '=');
		size_t name = end != NULL ? (size_t)(end - environ[i]) + 1 : 0;
		bool taken = name == 0;

		for (size_t j = 0; j < added + 1 && !taken; j++)
			taken = strncmp(env[j], environ[i], name) == 0;
		if (!taken)
			env[used++] = environ[i];
	}
	return env;
}

static char **
program_argv(const struct kube_plugin *plugin)
{
	size_t count = 0;
	char **argv;

	while (plugin->args[count] != NULL)
		count++;
	argv = alloc_zero(count + 2, sizeof *argv);
	argv[0] = plugin->command;
	memcpy(argv + 1, plugin->args, count * sizeof *argv);
	return argv;
}

/* A group of its own, so that all of it can be killed; no signal blocked or ignored; no other descriptors. */
static int
program_spawn(struct kube_program *program, int output_fd, int words_fd)
{
	const struct kube_plugin *plugin = program->plugin;
	AUTO_FREE char **argv = program_argv(plugin);
	AUTO_FREE char **env = program_env(plugin);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int result;

	sigemptyset(&none);
	sigfillset(&all);
	if (posix_spawn_file_actions_init(&actions) != 0 || posix_spawnattr_init(&attributes) != 0)
		abort();
	posix_spawnattr_setflags(
		&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	if (posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
		posix_spawn_file_actions_adddup2(&actions, output_fd, 1) != 0 ||
		posix_spawn_file_actions_adddup2(&actions, words_fd, 2) != 0 ||
		posix_spawn_file_actions_addclosefrom_np(&actions, 3) != 0)
		abort();
	result = posix_spawnp(&program->pid, plugin->command, &actions, &attributes, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return result;
}

static void
channel_init(struct channel *channel, struct event_base *base, int *fd, size_t max)
{
	channel->fd = STEAL_FD(*fd);
	channel->max = max;
	channel->text = alloc_zero(1, max + 1);
	channel->event = must_alloc(event_new(base, channel->fd, EV_READ | EV_PERSIST, channel_on_input, channel));
	event_add(channel->event, NULL);
}

static int
program_open(struct kube_program *program, struct event_base *base, struct err *err)
{
	AUTO_FD output = -1;
	AUTO_FD output_in = -1;
	AUTO_FD words = -1;
	AUTO_FD words_in = -1;
	int pair[2], errnum;

	if (pipe2(pair, O_CLOEXEC) != 0)
		return err_set_errno(err, errno, "pipe");
	output = pair[0];
	output_in = pair[1];
	if (pipe2(pair, O_CLOEXEC) != 0)
		return err_set_errno(err, errno, "pipe");
	words = pair[0];
	words_in = pair[1];
	if (evutil_make_socket_nonblocking(output) != 0 || evutil_make_socket_nonblocking(words) != 0)
		return err_set_errno(err, errno, "pipe");
	errnum = program_spawn(program, output_in, words_in);
	if (errnum != 0)
		return err_set_errno(err, errnum, "execute %s%s%.200s", program->plugin->command,
			program->plugin->hint[0] != '\0' ? ", see " : "", program->plugin->hint);
	channel_init(&program->output, base, &output, OUTPUT_MAX);
	channel_init(&program->words, base, &words, WORDS_MAX);
	return 0;
}

struct kube_program *
kube_program_start(struct event_base *base, const struct kube_plugin *plugin, uint32_t timeout_ms,
	kube_program_f *done, void *arg, struct err *err)
{
	struct kube_program *program = alloc_zero(1, sizeof *program);
	struct timeval deadline = clock_tv(timeout_ms);

	*program = (struct kube_program){
		.plugin = plugin, .timeout_ms = timeout_ms, .done = done, .arg = arg, .pid_fd = -1
	};
	program->output.fd = program->words.fd = -1;
	if (program_open(program, base, err) != 0) {
		program_free(program);
		return NULL;
	}
	program->pid_fd = (int)syscall(SYS_pidfd_open, program->pid, 0);
	if (program->pid_fd < 0) {
		err_set_errno(err, errno, "pidfd_open");
		kube_program_kill(program);
		return NULL;
	}
	program->end = must_alloc(event_new(base, program->pid_fd, EV_READ, program_on_end, program));
	program->deadline = must_alloc(event_new(base, -1, 0, program_on_deadline, program));
	event_add(program->end, NULL);
	event_add(program->deadline, &deadline);
	return program;
}
