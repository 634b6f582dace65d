/* keys.c - a machine of three states: within a line, at its beginning, behind a "~" there. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/terminal/keys.h"

enum { CTRL_Z = 0x1a };

const char keys_help[] = "~.   ends the session\n"
			 "~d   leaves it running, and tells how to come back\n"
			 "~^Z  suspends orchardctl\n"
			 "~~   sends one ~\n"
			 "~?   this\n"
			 "(at the beginning of a line)";

static enum keys_wish
wish_of(char c)
{
	switch (c) {
	case '.':
		return KEYS_END;
	case 'd':
		return KEYS_LEAVE;
	case CTRL_Z:
		return KEYS_SUSPEND;
	case '?':
		return KEYS_HELP;
	default:
		return KEYS_NONE;
	}
}

size_t
keys_take(
	struct keys *keys, const char *typed, size_t len, char *out, size_t *ret_out_len, enum keys_wish *ret_wish)
{
	size_t taken = 0, out_len = 0;

	*ret_wish = KEYS_NONE;
	while (taken < len && *ret_wish == KEYS_NONE) {
		char c = typed[taken++];

		if (!keys->tilde && !keys->inside_line && c == '~') {
			keys->tilde = true;
			continue;
		}
		if (keys->tilde) {
			keys->tilde = false;
			*ret_wish = wish_of(c);
			if (*ret_wish != KEYS_NONE)
				break;
			out[out_len++] = '~';
			keys->inside_line = true;
			if (c == '~')
				continue;
		}
		out[out_len++] = c;
		keys->inside_line = c != '\r' && c != '\n';
	}
	*ret_out_len = out_len;
	return taken;
}
