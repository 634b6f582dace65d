/* session_tty.c - our side of a session: what is typed, the window's size, signals, and how fast the screen is. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/session.h"

#include "base/clock.h"
#include "base/err.h"
#include "orchardctl/command.h"
#include "orchardctl/terminal/frame.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { PIECE = 4096, CTRL_C = 0x03, REDRAW_MS = 100 };
enum source { FROM_SIGNALS, FROM_WINDOW, FROM_TYPING, FROM_SCREEN };

static void
watch(struct session *session, int how, int fd, enum source source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u32 = source };

	/* It fails for a terminal that is gone; a signal tells of that. */
	(void)!epoll_ctl(session->events_fd, how, fd, &event);
}

int
session_open_events(struct session *session, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	sigaddset(&set, SIGCONT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	session->window_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	session->events_fd = epoll_create1(EPOLL_CLOEXEC);
	if (session->window_fd < 0 || session->events_fd < 0)
		return err_set_errno(err, errno, "no descriptors for a terminal");
	watch(session, EPOLL_CTL_ADD, session->ctl->signals->fd, FROM_SIGNALS, EPOLLIN);
	watch(session, EPOLL_CTL_ADD, session->window_fd, FROM_WINDOW, EPOLLIN);
	return 0;
}

void
session_flow(struct session *session)
{
	bool typing = session->tty.raw && link_pending(session->link) < SESSION_HIGH && !session->over;
	size_t waiting = screen_waiting(&session->screen);

	if (typing != session->typing)
		watch(session, typing ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, session->tty.in, FROM_TYPING, EPOLLIN);
	session->typing = typing;
	if ((waiting > 0) != session->screen_waits)
		watch(session, waiting > 0 ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, session->tty.out, FROM_SCREEN,
			EPOLLOUT);
	session->screen_waits = waiting > 0;
	if (waiting > SESSION_HIGH)
		link_rest(session->link, true);
	else if (waiting < SESSION_LOW)
		link_rest(session->link, false);
}

void
session_send_size(struct session *session)
{
	unsigned rows, cols;

	session->redraw_ms = 0;
	tty_size(&session->tty, &rows, &cols);
	if (session->ready)
		link_send(session->link, frame_resize(rows, cols));
}

/* Shells and full-screen programs do so when the size has changed, and only then. */
void
session_ask_redraw(struct session *session)
{
	unsigned rows, cols;

	tty_size(&session->tty, &rows, &cols);
	if (!session->ready || rows < 2)
		return;
	link_send(session->link, frame_resize(rows - 1, cols));
	session->redraw_ms = clock_boot_ms() + REDRAW_MS;
}

void
session_take_terminal(struct session *session)
{
	struct err err;

	if (tty_raw(&session->tty, &err) != 0)
		session_finish(session, CTL_FAILED, "%s", err.msg);
	else
		session_send_size(session);
}

static void
suspend(struct session *session)
{
	tty_restore(&session->tty);
	kill(0, SIGTSTP);
	session_take_terminal(session);
}

static void
grant(struct session *session, enum keys_wish wish)
{
	switch (wish) {
	case KEYS_END:
		session_leave(session, CTL_OK, true);
		break;
	case KEYS_LEAVE:
		session_leave(session, CTL_OK, false);
		break;
	case KEYS_SUSPEND:
		suspend(session);
		break;
	case KEYS_HELP:
		session_say(session, "%s", keys_help);
		session_ask_redraw(session);
		break;
	case KEYS_NONE:
		break;
	}
}

static void
take_keys(struct session *session, const char *typed, size_t len)
{
	char out[PIECE + 1];
	enum keys_wish wish;
	size_t out_len;

	/* Without a connection there is no program that Ctrl-C could mean. */
	if (!session->ready && memchr(typed, CTRL_C, len) != NULL) {
		session_leave(session, CTL_SIGNAL + SIGINT, true);
		return;
	}
	while (len > 0 && !session->leaving && !session->over) {
		size_t taken = keys_take(&session->keys, typed, len, out, &out_len, &wish);

		if (out_len > 0 && session->ready)
			link_send(session->link, frame_stdin(out, out_len));
		grant(session, wish);
		typed += taken;
		len -= taken;
	}
}

static void
on_typing(struct session *session)
{
	char typed[PIECE];
	ssize_t n = read(session->tty.in, typed, sizeof typed);

	if (n > 0)
		take_keys(session, typed, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		session_leave(session, CTL_SIGNAL + SIGHUP, true);
}

static void
on_window(struct session *session)
{
	struct signalfd_siginfo info;

	while (read(session->window_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		if (info.ssi_signo == SIGCONT && session->tty.raw) {
			/* Who stopped us had the terminal meanwhile. */
			session->tty.raw = false;
			session_take_terminal(session);
			session_ask_redraw(session);
		} else {
			session_send_size(session);
		}
	}
}

static void
on_signals(struct session *session)
{
	signals_take(session->ctl->signals);
	session->interrupted = true;
	if (session->leaving)
		session->over = true;
	else
		session_leave(session, CTL_SIGNAL + session->ctl->signals->first, true);
}

void
session_on_events(void *arg)
{
	struct session *session = arg;
	struct epoll_event events[4];
	int count = epoll_wait(session->events_fd, events, 4, 0);

	for (int i = 0; i < count && !session->over; i++) {
		switch ((enum source)events[i].data.u32) {
		case FROM_SIGNALS:
			on_signals(session);
			break;
		case FROM_WINDOW:
			on_window(session);
			break;
		case FROM_TYPING:
			on_typing(session);
			break;
		case FROM_SCREEN:
			screen_push(&session->screen);
			break;
		}
	}
	session_flow(session);
}
