/*
 * bench_agent.c - commands through N agents at once, and the same spawns without them, in turns of one run.
 *
 * Both sides are closed loops of N: N connections of one client, or N processes
 * that spawn and wait. Each side lives in a cgroup of its own below the one
 * given, and each agent in one with `jobs/`, as in a sandbox: their cpu.stat
 * gives the processor time a command costs all told, whatever else runs here.
 * With "-" for the agent: only the bare spawns, once, as one JSON line.
 */
/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/id.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LOOPS = 256, MAX_SAMPLES = 1 << 20, ROUNDS = 5, ANSWER = 64 << 10 };

extern char **environ;

static const char *agent_path, *cgroup_path;
static char command_json[4096];
static char **command_argv;

struct agent {
	pid_t pid;
	int fd;
	int64_t fence, began_us;
	char last_id[ID_UUID_SIZE], answer[ANSWER];
	size_t got;
	char cgroup[560];
};

static struct agent agents[MAX_LOOPS];

/* Shared with the processes of the other side. */
struct samples {
	size_t count;
	int64_t us[MAX_SAMPLES];
};

static struct samples *samples;

struct figure {
	double p50, p99, per_s, cpu_us;
};

static char side_paths[2][512];
enum side { SIDE_BARE, SIDE_AGENT };

static void
side_file(enum side side, const char *name, char path[600])
{
	snprintf(path, 600, "%s/%s", side_paths[side], name);
}

static void
side_make(enum side side)
{
	snprintf(side_paths[side], sizeof side_paths[side], "%s/bench-%d-%s", cgroup_path, (int)getpid(),
		side == SIDE_BARE ? "bare" : "agent");
	if (mkdir(side_paths[side], 0755) < 0)
		err(1, "%s", side_paths[side]);
}

static double
side_cpu_us(enum side side)
{
	char path[600], text[64] = "";
	int fd;

	if (cgroup_path == NULL)
		return 0;
	side_file(side, "cpu.stat", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
		err(1, "%s", path);
	close(fd);
	return strtod(text + strlen("usage_usec"), NULL);
}

static void
join(const char *directory)
{
	char path[600];
	int fd;

	snprintf(path, sizeof path, "%s/cgroup.procs", directory);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		err(1, "%s", path);
	close(fd);
}

static void
sample(int64_t us)
{
	size_t at = __atomic_fetch_add(&samples->count, 1, __ATOMIC_RELAXED);

	if (at < MAX_SAMPLES)
		samples->us[at] = us;
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static struct figure
figure_take(double seconds, double cpu_us)
{
	size_t count = samples->count < MAX_SAMPLES ? samples->count : MAX_SAMPLES;
	struct figure figure = { 0 };

	if (count == 0)
		errx(1, "nothing was measured");
	qsort(samples->us, count, sizeof samples->us[0], compare);
	figure.p50 = (double)samples->us[count / 2] / 1000;
	figure.p99 = (double)samples->us[count * 99 / 100] / 1000;
	figure.per_s = (double)count / seconds;
	figure.cpu_us = cpu_us / (double)count;
	samples->count = 0;
	return figure;
}

static void
cgroup_make(struct agent *agent, int number, int *ret_fd)
{
	static const char *const below[] = { "", "/agent", "/jobs" };
	char path[600];

	snprintf(agent->cgroup, sizeof agent->cgroup, "%s/%d", side_paths[SIDE_AGENT], number);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s%s", agent->cgroup, below[i]);
		if (mkdir(path, 0755) < 0)
			err(1, "%s", path);
	}
	*ret_fd = open(agent->cgroup, O_RDONLY | O_DIRECTORY);
}

static void
agent_exec(const char *home, int listen_fd, int config_fd, int null_fd)
{
	char listen_text[16], config_text[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(listen_text, sizeof listen_text, "%d", listen_fd);
	snprintf(config_text, sizeof config_text, "%d", config_fd);
	dup2(null_fd, 0);
	dup2(null_fd, 1);
	join(home);
	execl(agent_path, agent_path, "--listen-fd", listen_text, "--config-fd", config_text, NULL);
	err(1, "%s", agent_path);
}

static const char *
agent_home(const struct agent *agent, char path[600])
{
	snprintf(path, 600, "%s/agent", agent->cgroup);
	return path;
}

static void
agent_start(struct agent *agent, int number)
{
	struct sockaddr_un {
		sa_family_t family;
		char path[108];
	} address = { .family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), config[2], cgroup_fd, null_fd = open("/dev/null", O_RDWR);
	char text[512], home[600];

	cgroup_make(agent, number, &cgroup_fd);
	snprintf(address.path + 1, sizeof address.path - 1, "bench-agent-%d-%d", (int)getpid(), number);
	if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 8) < 0 ||
		pipe(config) < 0 || fcntl(config[1], F_SETFD, FD_CLOEXEC) < 0)
		err(1, "socket");
	snprintf(text, sizeof text,
		"{\"sandbox_id\":\"bench\",\"sandbox_uid\":\"u\",\"token\":\"t\",\"env\":[],\"user\":\"\","
		"\"working_dir\":\"/\",\"cgroup_fd\":%d,\"oom_fd\":-1}",
		cgroup_fd);
	agent->pid = fork();
	if (agent->pid == 0)
		agent_exec(agent_home(agent, home), listener, config[0], null_fd);
	close(config[0]);
	if (agent->pid < 0 || write(config[1], text, strlen(text)) < 0)
		err(1, "agent");
	close(config[1]);
	agent->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(agent->fd, (struct sockaddr *)&address, sizeof address) < 0)
		err(1, "connect");
	close(listener);
	close(null_fd);
	close(cgroup_fd);
}

static void
agent_end(struct agent *agent)
{
	static const char *const below[] = { "/agent", "/jobs", "" };
	char path[600];

	kill(agent->pid, SIGTERM);
	waitpid(agent->pid, NULL, 0);
	close(agent->fd);
	snprintf(path, sizeof path, "find %s/jobs -mindepth 1 -type d -exec rmdir {} +", agent->cgroup);
	if (system(path) != 0)
		warnx("%s: not empty", agent->cgroup);
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof path, "%s%s", agent->cgroup, below[i]);
		rmdir(path);
	}
}

static void
agent_send(struct agent *agent)
{
	char body[8192], head[512], id[ID_UUID_SIZE];
	int len, head_len;

	id_uuid4(id);
	len = snprintf(body, sizeof body,
		"{\"job_id\":\"%s\",\"fence\":%lld,\"command\":%s,\"timeout_ms\":60000,\"ack\":[%s%s%s]}", id,
		(long long)++agent->fence, command_json, agent->last_id[0] ? "\"" : "", agent->last_id,
		agent->last_id[0] ? "\"" : "");
	memcpy(agent->last_id, id, sizeof id);
	head_len = snprintf(head, sizeof head,
		"POST /exec HTTP/1.1\r\nHost: a\r\nX-Orchard-Token: t\r\nX-Orchard-Sandbox: u\r\n"
		"Content-Length: %d\r\n\r\n",
		len);
	agent->got = 0;
	agent->began_us = clock_boot_us();
	memmove(body + head_len, body, (size_t)len);
	memcpy(body, head, (size_t)head_len);
	if (write(agent->fd, body, (size_t)(head_len + len)) != head_len + len)
		err(1, "write");
}

/* True when the answer is whole. */
static int
agent_receive(struct agent *agent)
{
	ssize_t got = read(agent->fd, agent->answer + agent->got, sizeof agent->answer - agent->got - 1);
	const char *end;

	if (got <= 0)
		err(1, "read");
	agent->got += (size_t)got;
	agent->answer[agent->got] = '\0';
	end = strstr(agent->answer, "\r\n\r\n");
	if (end == NULL || agent->answer[agent->got - 1] != '}')
		return 0;
	if (strncmp(agent->answer, "HTTP/1.1 200", 12) != 0 || strstr(end, "\"exit_code\":0") == NULL)
		errx(1, "answer: %s", agent->answer);
	return 1;
}

static struct figure
measure_agents(int count, double seconds)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), running = count;
	int64_t began = clock_boot_us(), until = began + (int64_t)(seconds * 1e6), now = began;
	double cpu_us = side_cpu_us(SIDE_AGENT);
	struct epoll_event events[MAX_LOOPS];

	for (int i = 0; i < count; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t)i };

		epoll_ctl(epoll, EPOLL_CTL_ADD, agents[i].fd, &event);
		agent_send(&agents[i]);
	}
	while (running > 0) {
		int ready = epoll_wait(epoll, events, MAX_LOOPS, 30000);

		if (ready <= 0 && errno != EINTR)
			err(1, "epoll_wait");
		for (int i = 0; i < ready; i++) {
			struct agent *agent = &agents[events[i].data.u32];

			if (!agent_receive(agent))
				continue;
			now = clock_boot_us();
			sample(now - agent->began_us);
			if (now < until)
				agent_send(agent);
			else
				running--;
		}
	}
	close(epoll);
	return figure_take((double)(now - began) / 1e6, side_cpu_us(SIDE_AGENT) - cpu_us);
}

static void
spawn_loop(int64_t until)
{
	posix_spawn_file_actions_t actions;
	int64_t began;
	pid_t pid;
	int status;

	if (cgroup_path != NULL)
		join(side_paths[SIDE_BARE]);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	do {
		began = clock_boot_us();
		if (posix_spawnp(&pid, command_argv[0], &actions, NULL, command_argv, environ) != 0 ||
			waitpid(pid, &status, 0) != pid || status != 0)
			errx(1, "%s failed", command_argv[0]);
		sample(clock_boot_us() - began);
	} while (clock_boot_us() < until);
	_exit(0);
}

static struct figure
measure_spawns(int count, double seconds)
{
	int64_t began = clock_boot_us(), until = began + (int64_t)(seconds * 1e6);
	double cpu_us = side_cpu_us(SIDE_BARE);
	pid_t pids[MAX_LOOPS];

	for (int i = 0; i < count; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			spawn_loop(until);
		if (pids[i] < 0)
			err(1, "fork");
	}
	for (int i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
	return figure_take((double)(clock_boot_us() - began) / 1e6, side_cpu_us(SIDE_BARE) - cpu_us);
}

static double
median(double values[ROUNDS])
{
	for (int i = 1; i < ROUNDS; i++)
		for (int j = i; j > 0 && values[j] < values[j - 1]; j--) {
			double swap = values[j];

			values[j] = values[j - 1];
			values[j - 1] = swap;
		}
	return values[ROUNDS / 2];
}

static void
write_command(void)
{
	size_t at = 0;

	for (char **arg = command_argv; *arg != NULL; arg++)
		at += (size_t)snprintf(command_json + at, sizeof command_json - at, "%s\"%s\"",
			arg == command_argv ? "[" : ",", *arg);
	snprintf(command_json + at, sizeof command_json - at, "]");
}

static void
measure(int count, double seconds)
{
	double p50[ROUNDS], p99[ROUNDS], cost[ROUNDS];

	side_make(SIDE_BARE);
	side_make(SIDE_AGENT);
	for (int i = 0; i < count; i++)
		agent_start(&agents[i], i);
	measure_agents(count, seconds / 4);
	for (int i = 0; i < ROUNDS; i++) {
		struct figure bare = measure_spawns(count, seconds), agent = measure_agents(count, seconds);

		printf("bare p50 %.2f p99 %.2f ms %.0f/s %.0f us CPU; agent p50 %.2f p99 %.2f ms %.0f/s %.0f us "
		       "CPU\n",
			bare.p50, bare.p99, bare.per_s, bare.cpu_us, agent.p50, agent.p99, agent.per_s,
			agent.cpu_us);
		p50[i] = agent.p50 / bare.p50;
		p99[i] = agent.p99 / bare.p99;
		cost[i] = agent.cpu_us - bare.cpu_us;
	}
	printf("%d at once, medians: p50 %.2fx, p99 %.2fx, %.0f us CPU more a command\n", count, median(p50),
		median(p99), median(cost));
	for (int i = 0; i < count; i++)
		agent_end(&agents[i]);
	rmdir(side_paths[SIDE_BARE]);
	rmdir(side_paths[SIDE_AGENT]);
}

static int
measure_bare(int count, double seconds)
{
	struct figure bare;

	cgroup_path = NULL;
	bare = measure_spawns(count, seconds);
	printf("{\"per_s\":%.0f,\"p50_us\":%.0f,\"p99_us\":%.0f}\n", bare.per_s, bare.p50 * 1000, bare.p99 * 1000);
	return 0;
}

int
main(int argc, char **argv)
{
	int option, count = 64;
	double seconds = 2;

	while ((option = getopt(argc, argv, "+n:s:g:")) != -1) {
		if (option == 'n')
			count = atoi(optarg);
		else if (option == 's')
			seconds = atof(optarg);
		else if (option == 'g')
			cgroup_path = optarg;
	}
	if (argc - optind < 2 || (cgroup_path == NULL && strcmp(argv[optind], "-") != 0) || count < 1 ||
		count > MAX_LOOPS)
		errx(2,
			"usage: bench_agent [-n COUNT] [-s SECONDS] -g CGROUP2-DIRECTORY AGENT COMMAND "
			"[ARGUMENT...]");
	agent_path = argv[optind];
	command_argv = argv + optind + 1;
	write_command();
	samples = mmap(NULL, sizeof *samples, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (samples == MAP_FAILED)
		err(1, "memory");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (strcmp(agent_path, "-") == 0)
		return measure_bare(count, seconds);
	measure(count, seconds);
	return 0;
}
