/*
 * login.h - what a login shell is told: read the start files, then run the command as if there had been none.
 *
 * While start files are read the shell's 0, 1 and 2 are /dev/null; the command's
 * own wait at higher numbers. So start files cannot eat its input, and what they
 * print goes nowhere. Afterwards directory, shell options that change how text
 * runs, and traps are put back; variables, functions, aliases and the rest of
 * what they set up stay. The text is read last, from a memory file: as long as
 * that file is unread, the command has not begun.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_AGENT_LOGIN_H
#define ORCHARD_AGENT_LOGIN_H

#include <stdbool.h>

/* Numbers at which a login shell finds the text and, in the three that follow, the command's 0, 1 and 2. */
enum { LOGIN_FD_BASH = 200, LOGIN_FD_SH = 6 };

/* The argument of -c, the caller's; cwd is absolute. */
char *login_script(bool is_bash, const char *cwd);
/*
 * The argument of -c of a login shell on a terminal, which replaces itself by its arguments. Start files have the
 * terminal; bash is interactive for them, and reads ~/.bashrc as above. A literal.
 */
const char *login_terminal_script(bool is_bash);

#endif
