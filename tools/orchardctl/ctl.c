/* ctl.c - what a command says to people, on stderr, and how it ends. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/command.h"
#include "orchardctl/contexts.h"
#include "orchardctl/output/cell.h"

#include <stdarg.h>
#include <stdio.h>

static void __attribute__((format(printf, 1, 0))) say(const char *fmt, va_list args)
{
	AUTO_FREE char *text = NULL, *shown = NULL;

	if (vasprintf(&text, fmt, args) < 0)
		abort();
	shown = cell_lines(text);
	fprintf(stderr, "orchardctl: %s\n", shown);
}

void
ctl_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}

void
ctl_note(const struct ctl *ctl, const char *fmt, ...)
{
	va_list args;

	if (ctl->quiet)
		return;
	va_start(args, fmt);
	say(fmt, args);
	va_end(args);
}

int
ctl_open(struct ctl *ctl)
{
	struct err err;

	if (contexts_resolve(ctl, &err) < 0) {
		ctl_error("%s", err.msg);
		return CTL_USAGE;
	}
	ctl->client = client_create(&ctl->server, ctl->retry_seconds, ctl->quiet);
	return 0;
}

void
ctl_close(struct ctl *ctl)
{
	client_close(ctl->client);
	cleanup_secret(&ctl->server.key);
	free(ctl->server.url);
	free(ctl->server.ca_file);
	ctl->client = NULL;
	ctl->server = (struct server){ 0 };
}

bool
ctl_is_colored(const struct ctl *ctl, int fd)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return !ctl->no_color && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
		strcmp(term, "dumb") != 0 && isatty(fd);
}

int
ctl_fail(const struct ctl *ctl, const struct err *err)
{
	if (ctl->signals != NULL && ctl->signals->first != 0)
		return CTL_SIGNAL + ctl->signals->first;
	ctl_error("%s", err->msg);
	switch (err->code) {
	case ERR_NOT_FOUND:
		return CTL_NOT_FOUND;
	case ERR_UNAVAILABLE:
		return CTL_UNREACHABLE;
	default:
		return CTL_FAILED;
	}
}
