/* stage.c - actors, and the pipe on which they report. */
/* SPDX-License-Identifier: MIT */
#include "stage.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "master/role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { PATIENCE_MS = 15000 };

static const char *actor_dir;
static int actor_events;

/* --- actors --- */

static void
actor_says(const char *role, const char *event, const struct role_env *env)
{
	char line[STAGE_LINE];
	int len = snprintf(line, sizeof line, "%s %d %s waiters=%" PRId64 " port=%" PRId64 " fds=%d,%d\n", role,
		(int)getpid(), event, env->config->max_waiters, env->config->port, env->listen_fd >= 0,
		env->spawner_fd >= 0);

	if (write(actor_events, line, (size_t)len) != len)
		_exit(99);
}

static bool
actor_plays(const char *part, const char *name)
{
	return strcmp(part, name) == 0;
}

static bool
actor_is_first(const struct role_env *env)
{
	struct proc_info info;

	return scoreboard_info(shm_scoreboard(env->shm), env->self.slot, &info) && info.restarts == 0;
}

static int
actor_work(struct role_env *env, const char *role, bool stubborn)
{
	struct pollfd fds[2] = { { .fd = env->alive_fd, .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo info = { 0 };
	sigset_t heard;

	sigemptyset(&heard);
	sigaddset(&heard, SIGTERM);
	sigaddset(&heard, SIGINT);
	sigaddset(&heard, SIGHUP);
	sigprocmask(SIG_BLOCK, &heard, NULL);
	fds[1].fd = stubborn ? -1 : signalfd(-1, &heard, SFD_CLOEXEC);
	actor_says(role, "ready", env);
	role_ready(env);
	do {
		while (poll(fds, 2, -1) < 0 && errno == EINTR)
			;
		if (fds[0].revents != 0)
			actor_says(role, "orphan", env);
		else if (read(fds[1].fd, &info, sizeof info) == (ssize_t)sizeof info)
			actor_says(role,
				info.ssi_signo == SIGTERM          ? "term"
					: info.ssi_signo == SIGHUP ? "hup"
								   : "int",
				env);
	} while (fds[0].revents == 0 && info.ssi_signo == SIGHUP);
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return ROLE_EXIT_OK;
}

static int
actor_main(struct role_env *env, const char *role)
{
	AUTO_FREE char *part = NULL;
	char path[128];
	struct err err;
	size_t len;

	snprintf(path, sizeof path, "%s/%s", actor_dir, role);
	if (file_read_at(AT_FDCWD, path, 32, &part, &len, &err) < 0)
		return ROLE_EXIT_FAILED;
	if (actor_plays(part, "good") || (actor_plays(part, "crash once") && !actor_is_first(env)) ||
		actor_plays(part, "stubborn"))
		return actor_work(env, role, actor_plays(part, "stubborn"));
	actor_says(role, part, env);
	if (actor_plays(part, "crash") || actor_plays(part, "crash once"))
		raise(SIGKILL);
	if (actor_plays(part, "hang"))
		return read(env->alive_fd, path, 1) == 0 ? ROLE_EXIT_OK : ROLE_EXIT_FAILED;
	if (actor_plays(part, "brief")) {
		role_ready(env);
		return ROLE_EXIT_FAILED;
	}
	err_set(&err, ERR_INTERNAL, "the %s has lost its lines", role);
	role_failed(env, &err);
	return actor_plays(part, "hopeless") ? ROLE_EXIT_HOPELESS : ROLE_EXIT_FAILED;
}

static int
worker_actor(struct role_env *env)
{
	return actor_main(env, "worker");
}

static int
reaper_actor(struct role_env *env)
{
	return actor_main(env, "reaper");
}

static int
spawner_actor(struct role_env *env)
{
	return actor_main(env, "spawner");
}

static int
gateway_actor(struct role_env *env)
{
	return actor_main(env, "gateway");
}

/* The gateway comes last: most plays do without. */
static const struct master_role cast[] = {
	{ PROC_SPAWNER, spawner_actor, 1, NULL },
	{ PROC_WORKER, worker_actor, 0, NULL },
	{ PROC_REAPER, reaper_actor, 1, NULL },
	{ PROC_GATEWAY, gateway_actor, 1, NULL },
};

/* --- the server --- */

static int
play(const char *conf, const char *log, const struct master_timing *timing, bool gateway)
{
	struct master_options options = { .config_path = conf,
		.roles = cast,
		.role_count = sizeof cast / sizeof *cast - !gateway,
		.timing = *timing };
	struct err err;
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	log_set_fd(fd);
	log_init("master", LOG_LEVEL_INFO);
	if (config_load(conf, &options.config, &err) < 0) {
		log_error("%s", err.msg);
		return MASTER_EXIT_FAILED;
	}
	return master_run(&options);
}

static void
write_config(const struct stage *stage, const char *path, const char *suffix, const char *lines)
{
	AUTO_FILE *file = fopen(path, "we");

	assert_non_null(file);
	fprintf(file,
		"port = %u\nstate_dir = \"%s/state%s\"\nrun_dir = \"%s/run%s\"\nservice_user = \"daemon\"\n"
		"agent_path = \"/bin/true\"\nauth_enabled = off\nmax_sandboxes = 16\nexec_queue_limit = 64\n"
		"job_store_max_records = 1024\n%s\n",
		(unsigned)stage->port, stage->dir, suffix, stage->dir, suffix, lines);
}

void
stage_config(struct stage *stage, const char *lines)
{
	write_config(stage, stage->conf, "", lines);
}

void
stage_part(struct stage *stage, const char *role, const char *part)
{
	char path[128];
	struct err err;

	snprintf(path, sizeof path, "%s/%s", stage->dir, role);
	assert_int_equal(file_write_atomic_at(AT_FDCWD, path, 0644, part, strlen(part), false, &err), 0);
}

void
stage_start(struct stage *stage)
{
	stage->master = fork();
	assert_true(stage->master >= 0);
	if (stage->master == 0) {
		actor_dir = stage->dir;
		actor_events = stage->events_write;
		close(stage->events_read);
		/* Settings come from the file alone. */
		clearenv();
		if (stage->notify_socket != NULL)
			setenv("NOTIFY_SOCKET", stage->notify_socket, 1);
		exit(play(stage->conf, stage->log, &stage->timing, stage->gateway));
	}
}

int
stage_run_second(struct stage *stage, const char *suffix, char *ret_log, size_t size)
{
	char conf[128];
	char log[128];
	AUTO_FREE char *text = NULL;
	struct err err;
	size_t len;
	int status;
	pid_t pid;

	snprintf(conf, sizeof conf, "%s/second.conf", stage->dir);
	snprintf(log, sizeof log, "%s/second.log", stage->dir);
	write_config(stage, conf, suffix, "");
	pid = fork();
	if (pid == 0) {
		struct master_timing impatient = stage->timing;

		impatient.lock_wait = 1;
		clearenv();
		actor_dir = stage->dir;
		actor_events = stage->events_write;
		exit(play(conf, log, &impatient, false));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(file_read_at(AT_FDCWD, log, 1 << 20, &text, &len, &err), 0);
	snprintf(ret_log, size, "%s", text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* --- hearing --- */

static bool
pending_take(struct stage *stage, char ret_line[STAGE_LINE])
{
	char *end = memchr(stage->pending, '\n', stage->pending_len);
	size_t len;

	if (end == NULL)
		return false;
	len = (size_t)(end - stage->pending);
	snprintf(ret_line, STAGE_LINE, "%.*s", (int)len, stage->pending);
	stage->pending_len -= len + 1;
	memmove(stage->pending, end + 1, stage->pending_len);
	return true;
}

static bool
hear(struct stage *stage, const char *words, int ms, char ret_line[STAGE_LINE])
{
	int64_t until = clock_boot_ms() + ms;
	struct pollfd fd = { .fd = stage->events_read, .events = POLLIN };

	for (;;) {
		int64_t left = until - clock_boot_ms();
		ssize_t n;

		while (pending_take(stage, ret_line))
			if (strstr(ret_line, words) != NULL)
				return true;
		if (left <= 0)
			return false;
		if (poll(&fd, 1, (int)left) <= 0)
			continue;
		n = read(stage->events_read, stage->pending + stage->pending_len,
			sizeof stage->pending - stage->pending_len);
		if (n <= 0)
			return false;
		stage->pending_len += (size_t)n;
	}
}

static void
print_log(const struct stage *stage)
{
	AUTO_FREE char *text = NULL;
	struct err err;
	size_t len;

	if (file_read_at(AT_FDCWD, stage->log, 1 << 20, &text, &len, &err) == 0)
		fprintf(stderr, "%s", text);
}

pid_t
stage_expect(struct stage *stage, const char *words, char ret_line[STAGE_LINE])
{
	char line[STAGE_LINE];
	const char *space;

	if (!hear(stage, words, PATIENCE_MS, line)) {
		print_log(stage);
		fail_msg("never heard \"%s\"", words);
	}
	if (ret_line != NULL)
		memcpy(ret_line, line, sizeof line);
	space = strchr(line, ' ');
	return space != NULL ? (pid_t)strtol(space, NULL, 10) : 0;
}

bool
stage_hears(struct stage *stage, const char *words, int ms)
{
	char line[STAGE_LINE];

	return hear(stage, words, ms, line);
}

void
stage_signal(struct stage *stage, int sig)
{
	assert_int_equal(kill(stage->master, sig), 0);
}

int
stage_wait(struct stage *stage)
{
	int status;

	assert_int_equal(waitpid(stage->master, &status, 0), stage->master);
	stage->master = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool
stage_logged(struct stage *stage, const char *words)
{
	AUTO_FREE char *text = NULL;
	struct err err;
	size_t len;

	return file_read_at(AT_FDCWD, stage->log, 1 << 20, &text, &len, &err) == 0 && strstr(text, words) != NULL;
}

void
stage_expect_log(struct stage *stage, const char *words)
{
	int64_t until = clock_boot_ms() + PATIENCE_MS;

	while (!stage_logged(stage, words)) {
		if (clock_boot_ms() > until) {
			print_log(stage);
			fail_msg("never logged \"%s\"", words);
		}
		poll(NULL, 0, 5);
	}
}

int
stage_connect(struct stage *stage)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_port = htons(stage->port), .sin_addr = { htonl(INADDR_LOOPBACK) }
	};
	AUTO_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 ? 0 : errno;
}

/* --- life --- */

static uint16_t
find_port(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	AUTO_FD probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof any;

	if (bind(probe, (struct sockaddr *)&any, len) < 0 || getsockname(probe, (struct sockaddr *)&any, &len) < 0)
		return 0;
	return ntohs(any.sin_port);
}

int
stage_setup(void **state)
{
	struct stage *stage = calloc(1, sizeof *stage);
	int fds[2];

	if (stage == NULL || pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	stage->events_read = fds[0];
	stage->events_write = fds[1];
	strcpy(stage->dir, "/tmp/test-master-XXXXXX");
	if (mkdtemp(stage->dir) == NULL || chmod(stage->dir, 0755) < 0)
		return -1;
	snprintf(stage->conf, sizeof stage->conf, "%s/conf", stage->dir);
	snprintf(stage->log, sizeof stage->log, "%s/log", stage->dir);
	stage->port = find_port();
	stage->timing = (struct master_timing){ .ready = 10000, .lived_well = 1, .drain_extra = 5000 };
	stage_part(stage, "worker", "good");
	stage_part(stage, "reaper", "good");
	stage_part(stage, "spawner", "good");
	stage_part(stage, "gateway", "good");
	stage_config(stage, "workers = 1");
	*state = stage;
	return 0;
}

int
stage_teardown(void **state)
{
	struct stage *stage = *state;
	struct err err;
	int rc;

	/* A stubborn actor hears of its master's death, so this ends them all. */
	if (stage->master > 0) {
		kill(stage->master, SIGKILL);
		waitpid(stage->master, NULL, 0);
	}
	close(stage->events_read);
	close(stage->events_write);
	rc = file_remove_tree_at(AT_FDCWD, stage->dir, &err);
	free(stage);
	return rc;
}
