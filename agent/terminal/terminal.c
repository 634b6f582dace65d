/*
 * terminal.c - a session's start, its viewer, and the bytes in both directions.
 *
 * The agent holds the slave open while the leader lives: so EIO means that all is
 * over, and a program that closes the terminal and opens it again loses nothing.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminal_state.h"

#include "agent/terminal/terminal_launch.h"
#include "agent/terminal/terminal_request.h"
#include "base/alloc.h"
#include "base/clock.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	TERMINAL_PIECE = 8 << 10,
	TERMINAL_PIECES = 16, /* read before others get their turn */
	TERMINAL_REPLAY = 1 << 20,
	TERMINAL_WINDOW = 64 << 10, /* kept of a session that nobody can attach to again */
	TERMINAL_INPUT_MAX = (1 << 20) + (128 << 10) /* as far as the budget goes: a paste of 1 MiB */
};

static void
terminal_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
terminal_tell(struct terminal *terminal)
{
	if (terminal->viewer != NULL)
		terminal->viewer->on_output(terminal->viewer->arg);
}

/* Beyond what it may hold for sure it is charged to what all have together. */
static bool
terminal_has_input_room(struct terminal *terminal)
{
	size_t waiting = evbuffer_get_length(terminal->pending);
	size_t charged = waiting > TERMINAL_INPUT_SURE ? waiting - TERMINAL_INPUT_SURE : 0;

	terminal->shared->input_left += (int64_t)terminal->charged - (int64_t)charged;
	terminal->charged = charged;
	return charged == 0 || (waiting < TERMINAL_INPUT_MAX && terminal->shared->input_left > 0);
}

void
terminal_close_master(struct terminal *terminal)
{
	event_del(terminal->readable);
	event_del(terminal->writable);
	terminal_close_fd(&terminal->master);
	evbuffer_drain(terminal->pending, evbuffer_get_length(terminal->pending));
	terminal_has_input_room(terminal);
	if (terminal->viewer != NULL)
		terminal->viewer->on_input(terminal->viewer->arg);
	if (terminal->input_full && terminal->viewer != NULL) {
		terminal->input_full = false;
		terminal->viewer->on_room(terminal->viewer->arg);
	}
}

static void
terminal_took(struct terminal *terminal, const char *bytes, size_t len)
{
	replay_add(&terminal->replay, bytes, len);
	terminal->quiet_ms = clock_boot_ms();
	if (terminal->leader_done)
		terminal->drained += len;
	terminal_tell(terminal);
}

void
terminal_read(struct terminal *terminal)
{
	static char piece[TERMINAL_PIECE];

	for (int i = 0; i < TERMINAL_PIECES && terminal->master >= 0 && !terminal->held; i++) {
		ssize_t got = read(terminal->master, piece, sizeof piece);

		if (got > 0) {
			terminal_took(terminal, piece, (size_t)got);
		} else if (got < 0 && errno == EAGAIN) {
			terminal->emptied = terminal->leader_done;
			return;
		} else if (got == 0 || errno != EINTR) {
			terminal_close_master(terminal);
		}
	}
}

static void
terminal_on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	terminal_read(arg);
	terminal_settle(arg);
}

static void
terminal_flush(struct terminal *terminal)
{
	size_t left = evbuffer_get_length(terminal->pending);
	int put = left == 0 ? 0 : evbuffer_write(terminal->pending, terminal->master);
	bool room;

	if (put < 0 && errno != EAGAIN && errno != EINTR)
		evbuffer_drain(terminal->pending, left);
	if (evbuffer_get_length(terminal->pending) > 0)
		event_add(terminal->writable, NULL);
	room = terminal_has_input_room(terminal);
	if (terminal->viewer != NULL && evbuffer_get_length(terminal->pending) < left)
		terminal->viewer->on_input(terminal->viewer->arg);
	if (!terminal->input_full || !room)
		return;
	terminal->input_full = false;
	if (terminal->viewer != NULL)
		terminal->viewer->on_room(terminal->viewer->arg);
}

static void
terminal_on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	terminal_flush(arg);
}

void
terminal_attach(struct terminal *terminal, const struct terminal_viewer *viewer)
{
	const struct terminal_viewer *before = terminal->viewer;

	if (terminal->phase == TERMINAL_ENDED)
		event_del(terminal->timer);
	terminal->viewer = viewer;
	terminal->input_full = false;
	if (before != NULL)
		before->on_taken(before->arg);
}

void
terminal_leave(struct terminal *terminal, const struct terminal_viewer *viewer, bool delivered)
{
	if (terminal->viewer != viewer)
		return;
	terminal->viewer = NULL;
	terminal->input_full = false;
	if (delivered)
		terminal->unwanted = true;
	if (terminal->phase == TERMINAL_ENDED) {
		terminal_keep(terminal);
		return;
	}
	terminal_hold(terminal, false);
	if (!terminal->detach)
		terminal_hang_up(terminal);
}

size_t
terminal_output(const struct terminal *terminal, uint64_t *offset, const char **ret_bytes)
{
	uint64_t start = replay_start(&terminal->replay);

	if (*offset < start)
		*offset = start;
	if (*offset >= terminal->replay.end) {
		*offset = terminal->replay.end;
		return 0;
	}
	return replay_at(&terminal->replay, *offset, ret_bytes);
}

void
terminal_hold(struct terminal *terminal, bool held)
{
	if (terminal->held == held)
		return;
	terminal->held = held;
	if (terminal->master < 0)
		return;
	if (held)
		event_del(terminal->readable);
	else
		event_add(terminal->readable, NULL);
}

/* Copied into what waits already: a chain for each small frame would weigh far more than the bytes that are counted. */
static void
terminal_append(struct terminal *terminal, struct evbuffer *bytes)
{
	size_t len = evbuffer_get_length(bytes);

	if (len > 0 && evbuffer_add(terminal->pending, evbuffer_pullup(bytes, -1), len) < 0)
		abort();
	evbuffer_drain(bytes, len);
}

bool
terminal_input(struct terminal *terminal, struct evbuffer *bytes)
{
	if (terminal->leader_done || terminal->master < 0) {
		evbuffer_drain(bytes, evbuffer_get_length(bytes));
		return true;
	}
	terminal_append(terminal, bytes);
	terminal_flush(terminal);
	terminal->input_full = !terminal_has_input_room(terminal);
	return !terminal->input_full;
}

size_t
terminal_waiting(const struct terminal *terminal)
{
	return evbuffer_get_length(terminal->pending);
}

void
terminal_resize(struct terminal *terminal, const struct pty_size *size)
{
	if (terminal->master >= 0 && pty_resize(terminal->master, size) == 0)
		terminal->size = *size;
}

void
terminal_signal(struct terminal *terminal, int sig)
{
	if (terminal->leader_done || terminal->master < 0)
		return;
	if (pty_signal(terminal->master, sig) < 0)
		kill(-terminal->pid, sig);
}

static struct terminal *
terminal_create(struct terminal_shared *shared, const struct terminal_request *request)
{
	struct terminal *terminal = alloc_zero(1, sizeof *terminal);

	terminal->shared = shared;
	terminal->master = terminal->slave = -1;
	terminal->size = request->size;
	terminal->detach = request->detach;
	terminal->started_at = clock_wall();
	terminal->started_us = clock_boot_us();
	id_uuid4(terminal->id);
	tree_init(&terminal->tree, shared->keeper, terminal->id);
	replay_init(&terminal->replay, request->detach ? TERMINAL_REPLAY : TERMINAL_WINDOW, &shared->replay_left);
	terminal->pending = evbuffer_new();
	terminal->timer = evtimer_new(shared->base, terminal_on_timer, terminal);
	if (terminal->pending == NULL || terminal->timer == NULL)
		abort();
	return terminal;
}

static void
terminal_watch(struct terminal *terminal)
{
	struct event_base *base = terminal->shared->base;
	int fd = terminal->master;

	terminal->readable = event_new(base, fd, EV_READ | EV_PERSIST, terminal_on_readable, terminal);
	terminal->writable = event_new(base, fd, EV_WRITE, terminal_on_writable, terminal);
	if (terminal->readable == NULL || terminal->writable == NULL || event_add(terminal->readable, NULL) < 0)
		abort();
}

int
terminal_start(struct terminal_shared *shared, const struct terminal_request *request,
	struct terminal **ret_terminal, int *ret_exit_code, struct err *err)
{
	struct terminal *terminal = terminal_create(shared, request);
	struct terminal_launch launch = {
		.config = shared->config,
		.ground = shared->ground,
		.users = &shared->users,
		.tree = &terminal->tree,
		.request = request,
		.session = terminal->id,
	};
	struct terminal_launched launched;

	if (terminal_launch(&launch, &launched, ret_exit_code, err) < 0) {
		terminal->phase = TERMINAL_ENDED;
		terminal_free(terminal);
		return -1;
	}
	terminal->pid = terminal->tree.leader = launched.pid;
	terminal->master = launched.master;
	terminal->slave = launched.slave;
	terminal_watch(terminal);
	*ret_terminal = terminal;
	return 0;
}

void
terminal_free(struct terminal *terminal)
{
	if (terminal->phase != TERMINAL_ENDED)
		tree_signal(&terminal->tree, SIGKILL);
	tree_fini(&terminal->tree);
	if (terminal->readable != NULL)
		event_free(terminal->readable);
	if (terminal->writable != NULL)
		event_free(terminal->writable);
	event_free(terminal->timer);
	terminal->shared->input_left += (int64_t)terminal->charged;
	evbuffer_free(terminal->pending);
	replay_fini(&terminal->replay);
	terminal_close_fd(&terminal->master);
	terminal_close_fd(&terminal->slave);
	free(terminal);
}
