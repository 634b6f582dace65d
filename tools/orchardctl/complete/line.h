/* line.h - a command line that is being typed: what its last word may be. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMPLETE_LINE_H
#define ORCHARDCTL_COMPLETE_LINE_H

#include "orchardctl/command.h"

struct line {
	const struct command *command; /* NULL: it is the command */
	const struct option_spec *option; /* whose value it is; NULL: of none */
	bool is_option; /* it begins an option */
	unsigned words; /* of the command, before it */
	const char *first; /* of these; NULL: none */
	const char *typed; /* what is there of it; of a value without "--NAME=" */
	const char *before; /* "--NAME=", which stays; before_len bytes */
	int before_len;
};

/* words: all behind "orchardctl", at least one; the last is being typed. Notes in ctl which server they name. Borrows all. */
void line_read(struct line *line, struct ctl *ctl, char **words, int count);

#endif
