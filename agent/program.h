/*
 * program.h - what is executed for a request: the shell and its text, or an argv.
 *
 * A text up to PROGRAM_MAX_ARGUMENT goes to the shell as its -c argument. The
 * kernel refuses longer ones (128 KiB an argument), so they are handed over in
 * an unlinked memory file that a short -c text evaluates and closes first.
 *
 * A login shell must be interactive while it reads its start files, since many
 * ~/.bashrc return early otherwise; the text itself then runs in a subshell,
 * which is not, so that `exit` and signals behave as usual.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_PROGRAM_H
#define ORCHARD_AGENT_PROGRAM_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct err;
struct json_object;

enum { PROGRAM_MAX_ARGUMENT = 100 << 10 };

struct program {
	char **argv; /* NULL at the end */
	char **paths; /* tried in this order, NULL at the end */
	int script_fd; /* -1: none */
	int script_target; /* the number the program expects it at */
	int stdin_target; /* where it expects its stdin; 0 unless start files come first */
	bool tty_noise; /* its first two lines of stderr may be the shell's about a missing tty */
};

/* root: where to look for shells ("" in the sandbox itself). */
struct program_request {
	struct json_object *command; /* string, or array of strings */
	bool login_shell;
	const char *root;
	const char *path; /* PATH of the command */
};

/* ERR_NOT_FOUND: no shell in the image. */
int program_prepare(const struct program_request *request, struct program *ret_program, struct err *err) MUSTCHECK;
void program_fini(struct program *program);

/* The kernel's memfd with data in it, rewound and sealed; -1 with errno. */
int program_memory_file(const void *data, size_t len) MUSTCHECK;

#endif
