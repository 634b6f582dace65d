/* session.c - a session from its beginning to its end: what must be there first, the loop, the way out. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/session.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/output/cell.h"
#include "orchardctl/output/print.h"

#include <stdarg.h>
#include <stdio.h>

enum { LEAVE_MS = 3000, DRAIN_MS = 5000 };

void
session_say(struct session *session, const char *fmt, ...)
{
	AUTO_FREE char *text = NULL, *shown = NULL;
	va_list args;

	if (session->ctl->quiet)
		return;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		abort();
	va_end(args);
	if (!session->tty.raw) {
		ctl_note(session->ctl, "%s", text);
		return;
	}
	shown = cell_lines(text);
	for (char *line = shown, *end; line != NULL; line = end) {
		AUTO_FREE char *whole = NULL;

		end = strchr(line, '\n');
		if (end != NULL)
			*end++ = '\0';
		whole = alloc_format("\r\norchardctl: %s%s", line, end == NULL ? "\r\n" : "");
		screen_write(&session->screen, whole, strlen(whole));
	}
}

void
session_finish(struct session *session, int status, const char *fmt, ...)
{
	va_list args;

	session->over = true;
	session->status = status;
	if (fmt == NULL)
		return;
	va_start(args, fmt);
	vsnprintf(session->words, sizeof session->words, fmt, args);
	va_end(args);
}

void
session_leave(struct session *session, int status, bool hang_up)
{
	static const char close_frame[] = "{\"type\":\"close\"}";

	session->leaving = true;
	session->status = status;
	if (!session->exited && session->id[0] != '\0' && (!hang_up || !session->ready))
		snprintf(session->words, sizeof session->words,
			"the session goes on; to come back: orchardctl shell %s --attach %s",
			session->spec->sandbox, session->id);
	if (!link_is_open(session->link)) {
		session->over = true;
		return;
	}
	if (hang_up)
		link_send(session->link, alloc_string(close_frame));
	link_shut(session->link);
	session->leave_by_ms = clock_boot_ms() + LEAVE_MS;
}

/* Until the sandbox is ready: why it can't be is told by words, and all that is refused is refused here. */
static int
await_sandbox(struct session *session)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/wait?timeout=20", session->spec->sandbox);
	struct ctl *ctl = session->ctl;
	bool told = false;

	for (;;) {
		AUTO_ANSWER answer = { 0 };
		struct request request = { .path = path };
		const char *status;
		struct err err;

		if (client_call(ctl->client, &request, &answer, &err) == 0) {
			status = print_string(answer.json, "status");
			if (strcmp(status, "ready") == 0)
				return CTL_OK;
			ctl_error("sandbox %s is %s: %s", session->spec->sandbox, status,
				print_string(answer.json, "status_message"));
			return CTL_FAILED;
		}
		if (answer.status != 408)
			return ctl_fail(ctl, &err);
		if (!told)
			ctl_note(ctl, "waiting for sandbox %s", session->spec->sandbox);
		told = true;
	}
}

static int
next_timeout(const struct session *session)
{
	int64_t now = clock_boot_ms(), at = session->leaving ? session->leave_by_ms : session->next_try_ms;

	if (!session->leaving && session->redraw_ms != 0 && (at == 0 || session->redraw_ms < at))
		at = session->redraw_ms;
	if (at == 0)
		return -1;
	return at > now ? (int)(at - now) : 0;
}

static void
look_at_clock(struct session *session)
{
	int64_t now = clock_boot_ms();

	if (session->leaving && now >= session->leave_by_ms)
		session->over = true;
	else if (!session->leaving && session->next_try_ms != 0 && now >= session->next_try_ms)
		session_connect(session);
	if (!session->leaving && session->redraw_ms != 0 && now >= session->redraw_ms)
		session_send_size(session);
}

static void
run(struct session *session)
{
	session_connect(session);
	while (!session->over) {
		session_flow(session);
		link_wait(session->link, next_timeout(session));
		if (!session->over)
			look_at_clock(session);
	}
}

/* The last output, then the terminal as it was, then why. */
static void
say_goodbye(struct session *session)
{
	bool was_raw = session->tty.raw;

	if (!session->interrupted)
		screen_drain(&session->screen, session->ctl->signals->fd, DRAIN_MS);
	if (was_raw && !session->exited && !session->screen.broken)
		tty_reset(&session->tty);
	tty_restore(&session->tty);
	if (session->words[0] == '\0')
		return;
	if (session->leaving)
		ctl_note(session->ctl, "%s", session->words);
	else
		ctl_error("%s", session->words);
}

static int
run_opened(struct session *session)
{
	struct ctl *ctl = session->ctl;
	struct err err;
	int status;

	screen_init(&session->screen, session->tty.out);
	status = await_sandbox(session);
	if (status != CTL_OK)
		return status;
	if (session_open_events(session, &err) != 0)
		return ctl_fail(ctl, &err);
	session->link = link_create(&ctl->server, session->events_fd, &session_link_events, session, &err);
	if (session->link == NULL)
		return ctl_fail(ctl, &err);
	run(session);
	say_goodbye(session);
	return session->status;
}

int
terminal_run(struct ctl *ctl, const struct terminal_spec *spec)
{
	struct session session = { .ctl = ctl, .spec = spec, .events_fd = -1, .window_fd = -1 };
	struct err err;
	int status;

	if (tty_open(&session.tty, &err) != 0) {
		ctl_error(
			"%s; without a terminal use 'orchardctl exec -i %s -- COMMAND...'", err.msg, spec->sandbox);
		return CTL_USAGE;
	}
	if (ctl->signals == NULL) {
		signals_catch(&session.own_signals);
		ctl->signals = &session.own_signals;
		client_watch_signals(ctl->client, ctl->signals);
	}
	status = run_opened(&session);
	if (ctl->signals == &session.own_signals) {
		client_watch_signals(ctl->client, NULL);
		ctl->signals = NULL;
	}
	link_free(session.link);
	screen_fini(&session.screen);
	tty_close(&session.tty);
	cleanup_fd(&session.events_fd);
	cleanup_fd(&session.window_fd);
	return status;
}
