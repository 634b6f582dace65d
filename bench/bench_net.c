/*
 * bench_net.c - what a network adds to making and removing a sandbox.
 *
 * As root, in a network namespace of its own: nothing of the host is touched. Real
 * gateway, N processes in namespaces of their own, wired one after the other.
 */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "network/net.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct lap {
	double wall_us, cpu_us;
};

static double
now_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static _Noreturn void
stop(const struct err *err)
{
	fprintf(stderr, "bench_net: %s\n", err->msg);
	exit(1);
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
report(const char *what, const struct lap *laps, int n)
{
	double *wall = must_alloc(calloc((size_t)n, sizeof *wall)),
	       *cpu = must_alloc(calloc((size_t)n, sizeof *cpu));

	for (int i = 0; i < n; i++) {
		wall[i] = laps[i].wall_us;
		cpu[i] = laps[i].cpu_us;
	}
	qsort(wall, (size_t)n, sizeof *wall, compare);
	qsort(cpu, (size_t)n, sizeof *cpu, compare);
	printf("%-8s min %6.0f us, median %6.0f us, p99 %6.0f us, processor time %6.0f us\n", what, wall[0],
		wall[n / 2], wall[n * 99 / 100], cpu[n / 2]);
	free(wall);
	free(cpu);
}

/* A process in a namespace of its own, as a sandbox is. */
static pid_t
start_box(void)
{
	int ends[2];
	char word;
	pid_t pid;

	if (pipe(ends) != 0 || (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		if (unshare(CLONE_NEWNET) != 0 || write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	if (read(ends[0], &word, 1) != 1)
		abort();
	close(ends[0]);
	close(ends[1]);
	return pid;
}

static struct net_grant
grant_of(const struct net *net, int number, int rules)
{
	struct net_grant grant = { .address = net_first_address(net) + (uint32_t)number };

	grant.egress.limited = rules > 0;
	grant.egress.count = (uint32_t)rules;
	for (int i = 0; i < rules; i++)
		grant.egress.allow[i] = ip_dest_of_v4(
			&(struct ip_range){ 0x0b000000 + ((uint32_t)i << 16), 16, 443 });
	return grant;
}

static void
measure(const struct net *net, int n, int rules)
{
	struct lap *laps = must_alloc(calloc((size_t)n, sizeof *laps));
	pid_t *boxes = must_alloc(calloc((size_t)n, sizeof *boxes));
	struct net_grant grant;
	struct err err;

	for (int i = 0; i < n; i++) {
		boxes[i] = start_box();
		grant = grant_of(net, i, rules);
		laps[i] = (struct lap){ now_us(CLOCK_MONOTONIC), now_us(CLOCK_PROCESS_CPUTIME_ID) };
		if (net_attach(net, boxes[i], &grant, &err) != 0)
			stop(&err);
		laps[i] = (struct lap){ now_us(CLOCK_MONOTONIC) - laps[i].wall_us,
			now_us(CLOCK_PROCESS_CPUTIME_ID) - laps[i].cpu_us };
	}
	report("attach", laps, n);
	for (int i = 0; i < n; i++) {
		grant = grant_of(net, i, rules);
		laps[i] = (struct lap){ now_us(CLOCK_MONOTONIC), now_us(CLOCK_PROCESS_CPUTIME_ID) };
		if (net_detach(net, &grant, &err) != 0)
			stop(&err);
		laps[i] = (struct lap){ now_us(CLOCK_MONOTONIC) - laps[i].wall_us,
			now_us(CLOCK_PROCESS_CPUTIME_ID) - laps[i].cpu_us };
	}
	report("detach", laps, n);
	for (int i = 0; i < n; i++) {
		(void)kill(boxes[i], SIGKILL);
		(void)waitpid(boxes[i], NULL, 0);
	}
	free(boxes);
	free(laps);
}

static void
in_child(int (*work)(const struct net *net, struct err *err), const struct net *net)
{
	pid_t pid = fork();
	struct err err;
	int status;

	if (pid == 0) {
		if (work(net, &err) != 0)
			stop(&err);
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		exit(1);
}

static int
work_up(const struct net *net, struct err *err)
{
	return net_up(net, NULL, 0, err);
}

int
main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 200, rules = argc > 2 ? atoi(argv[2]) : 0;
	char dir[] = "/tmp/bench-net-XXXXXX";
	struct config *config;
	struct net net;
	struct err err;

	log_init("bench", LOG_LEVEL_ERROR);
	if (n < 1 || n > 60000 || rules < 0 || rules > EGRESS_MAX) {
		fprintf(stderr, "usage: bench_net [SANDBOXES [RANGES OF EACH]]\n");
		return 2;
	}
	if (unshare(CLONE_NEWNET) != 0 || mkdtemp(dir) == NULL) {
		perror("bench_net");
		return 1;
	}
	setenv("AUTH_ENABLED", "off", 1);
	setenv("RUN_DIR", dir, 1);
	if (config_load(NULL, &config, &err) != 0)
		stop(&err);
	net_init(&net);
	net_keep_mounts(&net);
	net_open(&net, config);
	in_child(work_up, &net);
	measure(&net, n, rules);
	in_child(net_down, &net);
	return rmdir(dir) == 0 ? 0 : 1;
}
