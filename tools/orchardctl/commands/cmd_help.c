/* cmd_help.c - help: the same as --help, for those who look for it here. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/help.h"

#include "orchardctl/args.h"
#include "orchardctl/commands/commands.h"

int
cmd_help(struct ctl *ctl, int argc, char **argv)
{
	const struct command *command = NULL;
	struct args args;
	int code;

	args_init(&args, ctl, argc, argv);
	while ((code = args_next(&args)) == ARG_WORD) {
		if (command != NULL)
			return args_fail(&args, "one command, please");
		command = command_find(args.value);
		if (command == NULL)
			return args_fail(&args, "there is no command \"%s\"", args.value);
	}
	if (code != ARG_END)
		return args.status;
	help_print(command);
	return CTL_OK;
}
