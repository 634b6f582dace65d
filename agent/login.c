/*
 * login.c - the two scripts. Start files may alias or redefine what is used here, hence the \builtin; the
 * lines are one, so that bash has parsed all of it before ~/.bashrc defines an alias.
 */
/* SPDX-License-Identifier: MIT */
#include "agent/login.h"

#include "agent/env.h"
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* ~/.bashrc is read here unless the profile that bash has just read mentions it outside a comment. */
#define LOGIN_BASHRC                                                                                               \
	"for o in ~/.bash_profile ~/.bash_login ~/.profile; do [[ -r $o ]] && break; done; "                       \
	"if [[ -r $o && $(<\"$o\") =~ (^|$'\\n')[^#$'\\n']*bashrc ]]; then :; "                                    \
	"elif [[ -r ~/.bashrc ]]; then \\. ~/.bashrc || :; fi; "
#define LOGIN_TRAPS                                                                                                \
	"\\builtin trap - EXIT DEBUG ERR RETURN HUP INT QUIT ILL TRAP ABRT BUS FPE USR1 SEGV USR2 PIPE ALRM TERM " \
	"CHLD CONT TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS; "

/*
 * Bash must be interactive while it reads its start files, since many ~/.bashrc return early otherwise; the
 * text then runs in a subshell, which is not, so that `exit` and signals behave as usual.
 */
static const char login_bash[] =
	"\\builtin set +eux; " LOGIN_BASHRC "\\builtin set +aefknuvxCETH +o pipefail +o posix; " LOGIN_TRAPS
	"\\builtin export PATH=\"${PATH:-" ENV_DEFAULT_PATH "}\"; \\builtin unset -f exec; "
	"IFS= \\builtin read -r -d '' o <&200; \\exec 200<&-; "
	"([[ . -ef %s ]] || \\builtin cd -- %s; "
	"\\exec <&201 >&202 2>&203 201<&- 202>&- 203>&-; \\builtin eval \"unset -v o; $o\")";

/* dash and busybox: no start file but the profiles, never interactive. One-digit descriptors are all they know. */
static const char login_sh[] = "set +efuvxC; export PATH=\"${PATH:-" ENV_DEFAULT_PATH
			       "}\"; trap - 0 1 2 3 6 10 12 13 14 15; cd -- %s; "
			       "exec <&7 >&8 2>&9 7<&- 8>&- 9>&-; eval \"exec 6<&-; $(command -p cat <&6)\"";

/* In single quotes, whatever is in it. */
static char *
login_quote(const char *text)
{
	char *quoted = alloc_bytes(strlen(text) * 4 + 3), *at = quoted;

	*at++ = '\'';
	for (; *text != '\0'; text++) {
		if (*text == '\'')
			at = stpcpy(at, "'\\'");
		*at++ = *text;
	}
	strcpy(at, "'");
	return quoted;
}

char *
login_script(bool is_bash, const char *cwd)
{
	char *quoted = login_quote(cwd);
	char *script = is_bash ? alloc_format(login_bash, quoted, quoted) : alloc_format(login_sh, quoted);

	free(quoted);
	return script;
}

const char *
login_terminal_script(bool is_bash)
{
	return is_bash ? LOGIN_BASHRC "\\exec -- \"$@\"" : "exec \"$@\"";
}
