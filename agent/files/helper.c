/*
 * helper.c - who waits, who runs, and how each ends.
 *
 * A helper is freed when both its process has ended and its socket is closed, in either order: the last bytes of an
 * answer may still stand in the socket when the process is gone.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/files/helper.h"
#include "agent/files/helper_priv.h"

#include "agent/answer.h"
#include "agent/config.h"
#include "agent/user.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "http/http_server.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELPER_GRACE_MS = 2000, HELPER_BUFFER = 256 * 1024 };

TAILQ_HEAD(helper_list, helper);

struct helper_set {
	struct helper_set_options options;
	struct user_cache users;
	struct helper_list waiting, running;
	uint32_t waiting_count, running_count;
	bool stopping;
};

struct helper_set *
helper_set_create(const struct helper_set_options *options)
{
	struct helper_set *set = alloc_zero(1, sizeof *set);

	set->options = *options;
	TAILQ_INIT(&set->waiting);
	TAILQ_INIT(&set->running);
	return set;
}

void
helper_set_stop(struct helper_set *set)
{
	set->stopping = true;
}

static void
helper_free(struct helper *helper)
{
	helper_relay_stop(helper);
	if (helper->kill_timer != NULL)
		event_free(helper->kill_timer);
	if (helper->call.free_arg != NULL)
		helper->call.free_arg(helper->call.arg);
	free(helper->leaves);
	free(helper->user);
	free(helper);
}

static void
helper_signal(struct helper *helper, int sig)
{
	if (helper->exited)
		return;
	kill(helper->pid, sig);
}

void
helper_set_free(struct helper_set *set)
{
	struct helper_list *lists[] = { &set->waiting, &set->running };
	struct helper *helper;

	for (size_t i = 0; i < 2; i++)
		while ((helper = TAILQ_FIRST(lists[i])) != NULL) {
			TAILQ_REMOVE(lists[i], helper, link);
			if (i == 1)
				helper_signal(helper, SIGKILL);
			helper_free(helper);
		}
	free(set);
}

/* --- the end --- */

static void
helper_on_kill_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	helper_signal(arg, SIGKILL);
}

/* A janitor is a helper that nobody waits for. */
static void
janitor_run(struct helper_side *side, const void *path)
{
	ssize_t gone = unlink(path);

	(void)side;
	(void)gone; /* best effort: it may never have been made */
}

static void helper_enter(struct helper_set *set, struct helper *helper);

static struct helper *
helper_create(struct helper_set *set, const struct helper_call *call)
{
	struct helper *helper = alloc_zero(1, sizeof *helper);

	helper->set = set;
	helper->call = *call;
	helper->user = alloc_string(call->user != NULL ? call->user : set->options.config->user);
	helper->fd = -1;
	helper->kill_timer = evtimer_new(set->options.base, helper_on_kill_time, helper);
	if (helper->kill_timer == NULL)
		abort();
	return helper;
}

static void
helper_clean_up(struct helper *helper)
{
	struct helper_call call = { .run = janitor_run, .free_arg = free, .user = helper->user };

	if (helper->leaves == NULL || helper->set->stopping)
		return;
	call.arg = STEAL_PTR(helper->leaves);
	helper_enter(helper->set, helper_create(helper->set, &call));
}

static void
helper_tell_failure(struct helper *helper)
{
	struct http_exchange *exchange = STEAL_PTR(helper->exchange);
	char words[128] = "the helper process of this call ended without an answer";

	if (exchange == NULL)
		return;
	http_exchange_on_gone(exchange, NULL, NULL);
	if (WIFSIGNALED(helper->status))
		snprintf(words, sizeof words, "the helper process of this call was ended by signal %d",
			WTERMSIG(helper->status));
	if (helper->answering)
		http_exchange_abort(exchange);
	else if (helper->disk_full)
		answer_error(
			exchange, 507, "quota", "the sandbox's disk is full; remove files, or make it with more");
	else
		answer_error(exchange, 500, "io_error", words);
}

static void helper_set_fill(struct helper_set *set);

static void
helper_finish(struct helper *helper)
{
	struct helper_set *set = helper->set;

	helper_tell_failure(helper);
	TAILQ_REMOVE(&set->running, helper, link);
	set->running_count--;
	helper_clean_up(helper);
	helper_free(helper);
	helper_set_fill(set);
}

void
helper_close(struct helper *helper)
{
	struct timeval grace = clock_tv(HELPER_GRACE_MS);

	helper_relay_stop(helper);
	if (helper->exited)
		helper_finish(helper);
	else
		event_add(helper->kill_timer, &grace);
}

bool
helper_set_on_exit(struct helper_set *set, pid_t pid, int status)
{
	struct helper *helper;

	TAILQ_FOREACH(helper, &set->running, link)
	if (helper->pid == pid && !helper->exited)
		break;
	if (helper == NULL)
		return false;
	helper->exited = true;
	helper->status = status;
	event_del(helper->kill_timer);
	if (helper->fd < 0)
		helper_finish(helper);
	return true;
}

void
helper_set_on_disk_full(struct helper_set *set)
{
	struct helper *helper;

	TAILQ_FOREACH(helper, &set->running, link)
	{
		helper->disk_full = true;
		helper_signal(helper, SIGKILL);
	}
}

/* --- the start --- */

static void
helper_on_gone(void *arg)
{
	struct helper *helper = arg;

	helper->exchange = NULL;
	if (helper->pid != 0) {
		helper_close(helper);
		return;
	}
	TAILQ_REMOVE(&helper->set->waiting, helper, link);
	helper->set->waiting_count--;
	helper_free(helper);
}

static int
helper_fork(struct helper *helper, const struct user *user, int fd)
{
	struct helper_set *set = helper->set;
	struct helper_ground ground = {
		.spawn = set->options.ground,
		.config = set->options.config,
		.user = user,
		.fd = fd,
		.length = helper->exchange != NULL ? http_exchange_length(helper->exchange) : 0,
	};
	pid_t pid = fork();

	if (pid == 0)
		helper_run(&ground, &helper->call);
	if (pid < 0)
		return -1;
	helper->pid = pid;
	return 0;
}

static int
helper_open(int ret_ends[2])
{
	int size = HELPER_BUFFER;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_ends) < 0)
		return -1;
	for (size_t i = 0; i < 2; i++)
		setsockopt(ret_ends[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	return 0;
}

/* ERR_INVALID and the like: the user; ERR_BUSY: no process, or no descriptor. */
static int
helper_launch(struct helper *helper, struct err *err)
{
	struct helper_set *set = helper->set;
	struct user user;
	int ends[2], rc, errnum;

	if (user_cache_find(&set->users, "", helper->user, &user, err) < 0)
		return -1;
	rc = helper_open(ends);
	if (rc == 0) {
		rc = helper_fork(helper, &user, ends[1]);
		errnum = errno;
		close(ends[1]);
		if (rc == 0) {
			helper_relay_start(helper, set->options.base, ends[0]);
			return 0;
		}
		close(ends[0]);
		errno = errnum;
	}
	return err_set(err, ERR_BUSY, "no process can be started for this call: %s", strerror(errno));
}

static void
helper_give_up(struct helper *helper, const struct err *why)
{
	struct http_exchange *exchange = STEAL_PTR(helper->exchange);
	bool busy = why->code == ERR_BUSY;

	helper_free(helper);
	if (exchange != NULL)
		answer_error(exchange, busy ? 503 : 422, busy ? "busy" : "invalid", why->msg);
}

/* Where there are no processes left it waits for one that ends, if any will. */
static void
helper_set_fill(struct helper_set *set)
{
	struct helper *helper;
	struct err err;

	while (set->running_count < HELPER_MAX_RUNNING && (helper = TAILQ_FIRST(&set->waiting)) != NULL) {
		bool launched = helper_launch(helper, &err) == 0;

		if (!launched && err.code == ERR_BUSY && set->running_count > 0)
			return;
		TAILQ_REMOVE(&set->waiting, helper, link);
		set->waiting_count--;
		if (!launched) {
			helper_give_up(helper, &err);
			continue;
		}
		TAILQ_INSERT_TAIL(&set->running, helper, link);
		set->running_count++;
	}
}

static void
helper_enter(struct helper_set *set, struct helper *helper)
{
	TAILQ_INSERT_TAIL(&set->waiting, helper, link);
	set->waiting_count++;
	helper_set_fill(set);
}

static bool
helper_admit(struct helper_set *set, struct http_exchange *exchange)
{
	if (set->stopping)
		answer_error(exchange, 503, "stopping", "the sandbox is being ended");
	else if (set->waiting_count >= HELPER_MAX_WAITING)
		answer_error(
			exchange, 503, "busy", "too many file calls wait for this sandbox already; try again soon");
	else
		return true;
	return false;
}

void
helper_start(struct helper_set *set, struct http_exchange *exchange, const struct helper_call *call)
{
	struct helper *helper;

	if (!helper_admit(set, exchange)) {
		if (call->free_arg != NULL)
			call->free_arg(call->arg);
		return;
	}
	helper = helper_create(set, call);
	helper->exchange = exchange;
	http_exchange_on_gone(exchange, helper_on_gone, helper);
	helper_enter(set, helper);
}
