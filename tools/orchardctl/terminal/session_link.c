/*
 * session_link.c - the server's side of a session: what it says, and what to do when the connection is gone.
 *
 * A session is opened once. Until its id is known a broken connection ends it, as nobody could tell whether the
 * program runs; from then on it is looked for by its id, from the byte that was not seen yet.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/session.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/terminal/frame.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	CLOSE_NORMAL = 1000,
	CLOSE_BAD_INIT = 4400,
	CLOSE_TAKEN_OVER = 4409,
	CLOSE_FAULT = 4500,
	CLOSE_AGENT_LOST = 4503,
};

static const char *
session_known_id(const struct session *session)
{
	return session->id[0] != '\0' ? session->id : session->spec->session;
}

static char *
session_path(const struct session *session, const char *id)
{
	AUTO_FREE char *base = path_format("/sandboxes/%s/exec/pty", session->spec->sandbox);

	if (id == NULL)
		return STEAL_PTR(base);
	if (session->id[0] == '\0')
		return alloc_format("%s?session=%s", base, id);
	return alloc_format("%s?session=%s&offset=%" PRId64, base, id, session->offset);
}

void
session_connect(struct session *session)
{
	AUTO_FREE char *path = session_path(session, session_known_id(session));

	session->next_try_ms = 0;
	session->ready = false;
	session->last_error[0] = '\0';
	link_open(session->link, path);
}

static void
on_open(void *arg)
{
	struct session *session = arg;
	unsigned rows, cols;

	if (session_known_id(session) != NULL)
		return;
	tty_size(&session->tty, &rows, &cols);
	session->asked = true;
	link_send(session->link, frame_init(session->spec, rows, cols));
}

static void
take_ready(struct session *session, const struct heard *heard)
{
	bool again = session->id[0] != '\0' || session->spec->session != NULL;

	if (session->id[0] != '\0' && heard->offset > session->offset)
		session_say(session, "%" PRId64 " bytes of output are lost", heard->offset - session->offset);
	else if (session->lost)
		session_say(session, "connected again");
	if (heard->session[0] != '\0')
		snprintf(session->id, sizeof session->id, "%s", heard->session);
	session->offset = heard->offset;
	session->ready = true;
	session->lost = false;
	session_take_terminal(session);
	if (again)
		session_ask_redraw(session);
}

static void
take_exit(struct session *session, int code)
{
	session->exited = true;
	session->status = code < 0 ? CTL_SIGNAL - code : code;
	session_leave(session, session->status, false);
}

static void
on_text(const char *text, size_t len, void *arg)
{
	struct session *session = arg;
	struct heard heard;
	struct err err;

	if (frame_read(text, len, &heard, &err) != 0) {
		session_finish(session, CTL_FAILED, "%s", err.msg);
		return;
	}
	switch (heard.kind) {
	case HEARD_READY:
		take_ready(session, &heard);
		break;
	case HEARD_OUTPUT:
		session->offset += (int64_t)heard.len;
		screen_write(&session->screen, heard.data, heard.len);
		break;
	case HEARD_EXIT:
		take_exit(session, heard.code);
		break;
	case HEARD_ERROR:
		snprintf(session->last_error, sizeof session->last_error, "%s", heard.words);
		break;
	case HEARD_OTHER:
		break;
	}
	free(heard.data);
	session_flow(session);
}

/* The handshake was refused; the library does not tell the words, so they are asked for. */
static void
finish_refused(struct session *session, int status)
{
	static const char *const handshake[] = { "Connection: Upgrade", "Upgrade: websocket",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: b3JjaGFyZGN0bC1hc2tzIQ==", NULL };
	AUTO_FREE char *path = session_path(session, session_known_id(session));
	struct request request = { .path = path, .headers = handshake, .no_retry = true, .silence_s = 2 };
	struct err err;

	if (client_call(session->ctl->client, &request, NULL, &err) == 0 || err.code == ERR_UNAVAILABLE)
		session_finish(session, CTL_FAILED, "the server refused the terminal (status %d)", status);
	else
		session_finish(session, err.code == ERR_NOT_FOUND ? CTL_NOT_FOUND : CTL_FAILED, "%s", err.msg);
}

static void
finish_closed(struct session *session, int code, const char *reason)
{
	const char *why = session->last_error[0] != '\0' ? session->last_error : reason;

	if (*why == '\0')
		why = code == CLOSE_NORMAL ? "the session has ended" : "no reason was given";
	if (code == CLOSE_TAKEN_OVER)
		session_finish(session, CTL_FAILED, "another connection took the session over");
	else if (code == CLOSE_BAD_INIT && session_known_id(session) != NULL)
		session_finish(session, CTL_NOT_FOUND, "there is no such session any more: %s", why);
	else if (!session->ready && session->id[0] == '\0')
		session_finish(session, CTL_NOT_RUN, "the program could not be started: %s", why);
	else
		session_finish(session, CTL_FAILED, "the session ended: %s", why);
}

/* Tries again after a pause, or gives up. */
static void
look_again(struct session *session, int status, const char *reason)
{
	bool begun = session->id[0] != '\0';
	double seconds = begun ? session->spec->reconnect_seconds : session->ctl->retry_seconds;
	int64_t pause;

	if (!session->lost) {
		retry_start(&session->retry, seconds);
		if (begun && seconds > 0)
			session_say(session, "the connection broke%s%s; trying again (Ctrl-C gives up)",
				*reason != '\0' ? ": " : "", reason);
	}
	session->lost = true;
	session->ready = false;
	pause = retry_next(&session->retry, 0);
	if (pause >= 0)
		session->next_try_ms = clock_boot_ms() + pause + 1;
	else if (status != 0)
		finish_refused(session, status);
	else if (begun)
		session_finish(session, CTL_UNREACHABLE,
			"the connection broke; the session may still run: orchardctl shell %s --attach %s",
			session->spec->sandbox, session->id);
	else
		session_finish(
			session, CTL_UNREACHABLE, "%s does not answer: %s", session->ctl->server.url, reason);
}

static bool
status_may_pass(int status)
{
	return status == 0 || status == 429 || status == 502 || status == 503 || status == 504;
}

static void
on_closed(int code, int status, const char *reason, void *arg)
{
	struct session *session = arg;

	if (session->exited || session->leaving) {
		session->over = true;
		return;
	}
	if (!status_may_pass(status))
		finish_refused(session, status);
	else if (code == CLOSE_NORMAL || code == CLOSE_BAD_INIT || code == CLOSE_TAKEN_OVER ||
		code == CLOSE_AGENT_LOST || (code == CLOSE_FAULT && !session->ready) ||
		(session->asked && session->id[0] == '\0'))
		finish_closed(session, code, reason);
	else
		look_again(session, status, reason);
}

const struct link_events session_link_events = {
	.on_open = on_open,
	.on_text = on_text,
	.on_closed = on_closed,
	.on_watched = session_on_events,
};
