/*
 * main.c - orchardctl: global options, the command, its end.
 *
 * Knows no command by name; command_table.c does.
 */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/args.h"
#include "orchardctl/nearest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define RETRY_SECONDS 10

/* So that no socket gets the number of a closed standard stream. */
static void
open_standard_streams(void)
{
	int fd;

	while ((fd = open("/dev/null", O_RDWR | O_CLOEXEC)) >= 0 && fd <= STDERR_FILENO)
		;
	if (fd >= 0)
		close(fd);
}

static int
unknown_command(const char *name)
{
	struct nearest nearest;

	nearest_init(&nearest, name);
	for (const struct command *c = command_table; c->name != NULL; c++)
		if (!c->hidden)
			nearest_try(&nearest, c->name);
	if (nearest.word != NULL)
		ctl_error("there is no command \"%s\"; do you mean \"%s\"?\n'orchardctl --help' lists them", name,
			nearest.word);
	else
		ctl_error("there is no command \"%s\"\n'orchardctl --help' lists them", name);
	return CTL_USAGE;
}

/* What was written is only there when it could be; who closed the pipe does not want to hear of it. */
static int
close_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return CTL_SIGNAL + SIGPIPE;
	ctl_error("stdout: %s", strerror(errno));
	return status == CTL_OK ? CTL_FAILED : status;
}

int
main(int argc, char **argv)
{
	struct ctl ctl = { .retry_seconds = RETRY_SECONDS };
	struct args args;
	int code, status;

	open_standard_streams();
	args_init(&args, &ctl, argc, argv);
	code = args_next(&args);
	if (code == ARG_STOP)
		return close_stdout(args.status);
	if (code == ARG_END)
		return args_fail(&args, "a command is missing");
	ctl.command = command_find(args.value);
	if (ctl.command == NULL)
		return unknown_command(args.value);
	status = ctl.command->run(&ctl, argc - args.at + 1, argv + args.at - 1);
	ctl_close(&ctl);
	return close_stdout(status);
}
