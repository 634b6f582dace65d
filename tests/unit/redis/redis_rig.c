/* redis_rig.c - see redis_rig.h. */
/* SPDX-License-Identifier: MIT */
#include "redis_rig.h"

#include "redis/client.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

enum { LOOP_LIMIT_S = 60, ARGUMENTS_MAX = 32 };

static const char *const *extra_arguments;

int
rig_major_version(void)
{
	FILE *out = popen("redis-server --version", "re");
	int version = 0;

	assert_non_null(out);
	if (fscanf(out, "%*[^=]=%d", &version) != 1)
		version = 0;
	pclose(out);
	return version;
}

static void
server_exec(const struct rig_server *server)
{
	const char *argv[ARGUMENTS_MAX] = { "redis-server", "--port", "0", "--unixsocket", "redis.sock", "--save",
		"", "--appendonly", "no", "--dir", server->dir, "--logfile", "redis.log", NULL };
	size_t count = 13;

	for (const char *const *word = extra_arguments; word != NULL && *word != NULL && count + 1 < ARGUMENTS_MAX;)
		argv[count++] = *word++;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (chdir(server->dir) != 0 || freopen("/dev/null", "w", stdout) == NULL)
		_exit(126);
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static bool
server_takes_connections(const struct rig_server *server)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool connected;

	snprintf(address.sun_path, sizeof address.sun_path, "%s/redis.sock", server->dir);
	connected = connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
	close(fd);
	return connected;
}

static bool
server_run(struct rig_server *server)
{
	struct timespec pause = { .tv_nsec = 10000000 };

	server->pid = fork();
	assert_int_not_equal(server->pid, -1);
	if (server->pid == 0)
		server_exec(server);
	for (int i = 0; i < LOOP_LIMIT_S * 100; i++) {
		int status;

		if (server_takes_connections(server))
			return true;
		if (waitpid(server->pid, &status, WNOHANG) == server->pid) {
			server->pid = 0;
			if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
				return false;
			fail_msg("redis-server ended at once (status %d)", status);
		}
		nanosleep(&pause, NULL);
	}
	fail_msg("redis-server takes no connections");
	return false;
}

bool
rig_server_start(struct rig_server *server, const char *const *arguments)
{
	signal(SIGPIPE, SIG_IGN); /* as every role of the server does */
	*server = (struct rig_server){ .dir = "/tmp/orchard-redis-XXXXXX" };
	extra_arguments = arguments;
	assert_non_null(mkdtemp(server->dir));
	snprintf(server->url, sizeof server->url, "unix://%s/redis.sock", server->dir);
	if (server_run(server))
		return true;
	rmdir(server->dir);
	return false;
}

void
rig_server_kill(struct rig_server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	server->pid = 0;
}

void
rig_server_restart(struct rig_server *server)
{
	char path[128];

	snprintf(path, sizeof path, "%s/redis.sock", server->dir);
	unlink(path);
	assert_true(server_run(server));
}

void
rig_server_stop(struct rig_server *server)
{
	static const char *const names[] = { "redis.sock", "redis.log" };
	char path[128];

	if (server->pid > 0)
		rig_server_kill(server);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		snprintf(path, sizeof path, "%s/%s", server->dir, names[i]);
		unlink(path);
	}
	rmdir(server->dir);
}

static void
on_limit(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

struct wish {
	const bool *flag;
	const unsigned *count;
	unsigned at_least;
	const struct redis *redis;
	const char *problem;
};

static bool
came_true(const struct wish *wish)
{
	if (wish->flag != NULL)
		return *wish->flag;
	if (wish->count != NULL)
		return *wish->count >= wish->at_least;
	return strstr(redis_problem(wish->redis), wish->problem) != NULL;
}

static void
turn_until(struct event_base *base, const struct wish *wish)
{
	struct timeval limit_time = { .tv_sec = LOOP_LIMIT_S };
	bool over = false;
	struct event *limit = event_new(base, -1, 0, on_limit, &over);

	event_add(limit, &limit_time);
	while (!came_true(wish) && !over)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(limit);
	if (over)
		fail_msg("what was waited for did not come within %d s", LOOP_LIMIT_S);
}

void
rig_until(struct event_base *base, const bool *flag)
{
	turn_until(base, &(struct wish){ .flag = flag });
}

void
rig_until_count(struct event_base *base, const unsigned *count, unsigned at_least)
{
	turn_until(base, &(struct wish){ .count = count, .at_least = at_least });
}

void
rig_until_problem(struct event_base *base, const struct redis *redis, const char *words)
{
	turn_until(base, &(struct wish){ .redis = redis, .problem = words });
}
