/* test_worker.c - a worker as the master sees it: ready, told to leave, orphaned. */
/* SPDX-License-Identifier: MIT */
#include "worker/worker.h"

#include "api_fixture.h"
#include "fake_domain.h"

#include "base/clock.h"
#include "base/err.h"
#include "ipc/shm.h"
#include "master/role.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct process {
	struct fixture fixture;
	pid_t pid; /* 0: has been waited for */
	int ready_fd; /* read end */
	int alive_fd; /* write end */
};

/* The child gives its exit status to nobody else: no cmocka code runs in it. */
static void
run_worker(struct process *process, int ready_fd, int alive_fd)
{
	struct role_env env = {
		.config = &process->fixture.config,
		.shm = process->fixture.shm,
		.self = process->fixture.self,
		.listen_fd = process->fixture.listen_fd,
		.spawner_fd = -1,
		.ready_fd = ready_fd,
		.alive_fd = alive_fd,
	};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(process->ready_fd);
	close(process->alive_fd);
	_exit(worker_main(&env));
}

static void
start_worker(struct process *process)
{
	int ready[2], alive[2];

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(alive, O_CLOEXEC), 0);
	process->ready_fd = ready[0];
	process->alive_fd = alive[1];
	process->pid = fork();
	assert_true(process->pid >= 0);
	if (process->pid == 0)
		run_worker(process, ready[1], alive[0]);
	close(ready[1]);
	close(alive[0]);
}

/* What the worker says at its start: "R", or "E" and why. */
static void
read_report(struct process *process, char *text, size_t size)
{
	ssize_t n = 0, len = 0;

	while ((n = read(process->ready_fd, text + len, size - 1 - (size_t)len)) > 0)
		len += n;
	text[len] = '\0';
}

static void
start_ready_worker(struct process *process)
{
	char report[600];

	start_worker(process);
	read_report(process, report, sizeof report);
	assert_string_equal(report, "R");
}

static int
wait_for_exit(struct process *process)
{
	int status;

	assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
	process->pid = 0;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int
send_request(struct process *process, const char *path)
{
	char text[256];
	int fd = fixture_connect(&process->fixture);

	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: t\r\nX-API-Key: test-key\r\n\r\n", path);
	fixture_send(fd, text);
	return fd;
}

/* Reads until the text has come or the connection ends; true when it has come. */
static bool
comes(int fd, const char *wanted)
{
	char got[4096] = "";
	size_t len = 0;
	ssize_t n;

	while (strstr(got, wanted) == NULL && len < sizeof got - 1) {
		n = recv(fd, got + len, sizeof got - 1 - len, 0);
		if (n <= 0)
			return false;
		len += (size_t)n;
		got[len] = '\0';
	}
	return strstr(got, wanted) != NULL;
}

/* A request that waits has reached the worker once the counter shows it. */
static int
send_waiting_request(struct process *process)
{
	struct shm_scoreboard *board = shm_scoreboard(process->fixture.shm);
	int64_t before = scoreboard_sum(board, METRIC_REQUESTS_TOTAL);
	int fd = send_request(process, "/sandboxes/box-1/wait");

	while (scoreboard_sum(board, METRIC_REQUESTS_TOTAL) == before)
		poll(NULL, 0, 1);
	return fd;
}

static int
setup(void **state)
{
	struct process *process = calloc(1, sizeof *process);

	fixture_prepare(&process->fixture);
	process->ready_fd = process->alive_fd = -1;
	*state = process;
	return 0;
}

static int
teardown(void **state)
{
	struct process *process = *state;

	if (process->pid > 0) {
		kill(process->pid, SIGKILL);
		waitpid(process->pid, NULL, 0);
	}
	if (process->ready_fd >= 0)
		close(process->ready_fd);
	if (process->alive_fd >= 0)
		close(process->alive_fd);
	fixture_release(&process->fixture);
	free(process);
	return 0;
}

static void
test_a_ready_worker_answers(void **state)
{
	struct process *process = *state;
	int fd;

	start_ready_worker(process);
	fd = send_request(process, "/health");
	assert_true(comes(fd, "{\"status\":\"healthy\"}"));
	close(fd);
}

static void
test_a_worker_that_cannot_work_says_why(void **state)
{
	struct process *process = *state;
	char report[600];

	fake_fail(ERR_UNAVAILABLE, "no state directory");
	start_worker(process);
	read_report(process, report, sizeof report);
	assert_string_equal(report, "Eno state directory");
	assert_int_equal(wait_for_exit(process), ROLE_EXIT_FAILED);
}

static void
test_term_of_an_idle_worker_ends_it(void **state)
{
	struct process *process = *state;
	int fd;

	process->fixture.config.drain_timeout_seconds = 3600;
	start_ready_worker(process);
	fd = send_request(process, "/health");
	assert_true(comes(fd, "healthy"));
	kill(process->pid, SIGTERM);
	assert_int_equal(wait_for_exit(process), ROLE_EXIT_OK);
	close(fd);
}

static void
test_term_answers_those_who_still_wait_at_the_deadline(void **state)
{
	struct process *process = *state;
	int fd;

	process->fixture.config.drain_timeout_seconds = 0;
	start_ready_worker(process);
	fd = send_waiting_request(process);
	kill(process->pid, SIGTERM);
	assert_true(comes(fd, "\"code\":\"unavailable\""));
	close(fd);
	assert_int_equal(wait_for_exit(process), ROLE_EXIT_OK);
}

static void
test_term_waits_for_work_until_the_deadline(void **state)
{
	struct process *process = *state;
	int64_t began;

	fake.busy = 1;
	process->fixture.config.drain_timeout_seconds = 1;
	start_ready_worker(process);
	began = clock_boot_ms();
	kill(process->pid, SIGTERM);
	assert_int_equal(wait_for_exit(process), ROLE_EXIT_OK);
	assert_true(clock_boot_ms() - began >= 900);
}

static void
test_int_ends_it_whoever_waits(void **state)
{
	struct process *process = *state;
	int fd;

	process->fixture.config.drain_timeout_seconds = 3600;
	fake.busy = 1;
	start_ready_worker(process);
	fd = send_waiting_request(process);
	kill(process->pid, SIGINT);
	assert_int_equal(wait_for_exit(process), ROLE_EXIT_OK);
	assert_false(comes(fd, "HTTP/1.1"));
	close(fd);
}

static void
test_int_ends_a_drain(void **state)
{
	struct process *process = *state;
	struct proc_info info = { 0 };

	process->fixture.config.drain_timeout_seconds = 3600;
	fake.busy = 1;
	start_ready_worker(process);
	kill(process->pid, SIGTERM);
	while (scoreboard_info(shm_scoreboard(process->fixture.shm), process->fixture.self.slot, &info) &&
		info.state != PROC_DRAINING)
		poll(NULL, 0, 1);
	kill(process->pid, SIGINT);
	assert_int_equal(wait_for_exit(process), ROLE_EXIT_OK);
}

static void
test_an_orphan_leaves_soon(void **state)
{
	struct process *process = *state;
	int fd;

	process->fixture.config.drain_timeout_seconds = 3600;
	start_ready_worker(process);
	fd = send_waiting_request(process);
	close(process->alive_fd);
	process->alive_fd = -1;
	assert_true(comes(fd, "\"code\":\"unavailable\""));
	close(fd);
	assert_int_equal(wait_for_exit(process), ROLE_EXIT_OK);
}

#define WORKER_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WORKER_TEST(test_a_ready_worker_answers),
		WORKER_TEST(test_a_worker_that_cannot_work_says_why),
		WORKER_TEST(test_term_of_an_idle_worker_ends_it),
		WORKER_TEST(test_term_answers_those_who_still_wait_at_the_deadline),
		WORKER_TEST(test_term_waits_for_work_until_the_deadline),
		WORKER_TEST(test_int_ends_it_whoever_waits),
		WORKER_TEST(test_int_ends_a_drain),
		WORKER_TEST(test_an_orphan_leaves_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
