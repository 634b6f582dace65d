/* crash.c - see crash.h. */
/* SPDX-License-Identifier: MIT */
#include "crash.h"
#include "ipc/crash_point.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static unsigned points_left; /* 0: nobody dies */

void
ipc_crash_point(void)
{
	if (points_left != 0 && --points_left == 0)
		kill(getpid(), SIGKILL);
}

static pid_t
start(unsigned nth, crash_f *f, void *arg)
{
	pid_t pid = fork();

	if (pid < 0)
		abort();
	if (pid > 0)
		return pid;
	/* A failed assertion must not go on with the parent's other tests in here. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	points_left = nth;
	f(arg);
	_exit(0);
}

pid_t
crash_start(crash_f *f, void *arg)
{
	return start(0, f, arg);
}

static int
reap(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			abort();
	return status;
}

bool
crash_wait(pid_t pid)
{
	int status = reap(pid);

	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool
crash_at(unsigned nth, crash_f *f, void *arg)
{
	int status = reap(start(nth, f, arg));

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		abort();
	return false;
}

void
crash_kill_after(pid_t pid, unsigned microseconds)
{
	struct timespec nap = { .tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000 };

	nanosleep(&nap, NULL);
	kill(pid, SIGKILL);
	reap(pid);
}

void *
crash_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

void
crash_unmap(void *memory, size_t bytes)
{
	munmap(memory, bytes);
}

unsigned
crash_random(unsigned n)
{
	static unsigned seed;

	if (seed == 0) {
		const char *fixed = getenv("ORCHARD_TEST_SEED");

		seed = fixed != NULL ? (unsigned)strtoul(fixed, NULL, 10)
				     : (unsigned)time(NULL) ^ (unsigned)getpid();
		seed |= 1;
		fprintf(stderr, "ORCHARD_TEST_SEED=%u\n", seed);
	}
	return (unsigned)rand_r(&seed) % n;
}
