/* help.h - what --help prints, from the table of commands. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_HELP_H
#define ORCHARDCTL_HELP_H

#include "orchardctl/command.h"

/* Codes of global options that have no letter. */
enum { GLOBAL_SERVER = 256, GLOBAL_KEY, GLOBAL_CONTEXT, GLOBAL_RETRY, GLOBAL_NO_COLOR };

/* To stdout. NULL: orchardctl itself. */
void help_print(const struct command *command);
void help_version(void);

/* How an option is written: "-o, --output FORMAT". malloc'ed. */
char *help_option_text(const struct option_spec *option);
/* What each exit status means, in lines. */
extern const char help_exit_status[];
extern const char help_environment[];

#endif
