/*
 * config_syntax.c - a look at the raw text before libconfuse gets it.
 *
 * libconfuse drops '+' and '*' that stand outside quotes without a word, which would
 * change a key; it counts a comment in one line as two lines; and an open quote at
 * the end spoils the file it reads next. So such texts are refused here, and
 * comments become blanks.
 */
/* SPDX-License-Identifier: MIT */
#include "conf/config_load.h"
#include "base/err.h"

#include <string.h>

struct syntax {
	char *p;
	const char *path;
	int line;
	struct err *err;
};

/* Over n characters. */
static void
syntax_skip(struct syntax *syntax, size_t n)
{
	for (; n > 0 && *syntax->p != '\0'; n--)
		syntax->line += *syntax->p++ == '\n';
}

static void
syntax_blank(struct syntax *syntax, size_t n)
{
	for (; n > 0; n--) {
		if (*syntax->p != '\n')
			*syntax->p = ' ';
		syntax_skip(syntax, 1);
	}
}

static int
syntax_comment(struct syntax *syntax)
{
	const char *end = strstr(syntax->p + 2, "*/");

	if (end == NULL)
		return err_set(
			syntax->err, ERR_INVALID, "%s:%d: this comment does not end", syntax->path, syntax->line);
	syntax_blank(syntax, (size_t)(end + 2 - syntax->p));
	return 0;
}

static int
syntax_quoted(struct syntax *syntax)
{
	char quote = *syntax->p;
	int line = syntax->line;

	syntax_skip(syntax, 1);
	while (*syntax->p != quote) {
		if (*syntax->p == '\0')
			return err_set(syntax->err, ERR_INVALID,
				"%s:%d: the text that begins with %c here does not end", syntax->path, line, quote);
		syntax_skip(syntax, *syntax->p == '\\' ? 2 : 1);
	}
	syntax_skip(syntax, 1);
	return 0;
}

static int
syntax_token(struct syntax *syntax)
{
	const char *p = syntax->p;

	if (*p == '#' || strncmp(p, "//", 2) == 0)
		return syntax_blank(syntax, strcspn(p, "\n")), 0;
	if (strncmp(p, "/*", 2) == 0)
		return syntax_comment(syntax);
	if (*p == '"' || *p == '\'')
		return syntax_quoted(syntax);
	if (strncmp(p, "+=", 2) == 0)
		return syntax_skip(syntax, 2), 0;
	if (*p == '+' || *p == '*')
		return err_set(syntax->err, ERR_INVALID, "%s:%d: '%c' must stand in quotes", syntax->path,
			syntax->line, *p);
	if (strncmp(p, "${", 2) == 0)
		return syntax_skip(syntax, strcspn(p, "}") + 1), 0;
	if (strchr(" \t\r\n={}(),", *p) != NULL)
		return syntax_skip(syntax, 1), 0;
	return syntax_skip(syntax, strcspn(p, " \t\r\n={}(),#\"'+*")), 0;
}

int
config_syntax_check(char *text, const char *path, struct err *err)
{
	struct syntax syntax = { .p = text, .path = path, .line = 1, .err = err };

	while (*syntax.p != '\0')
		if (syntax_token(&syntax) < 0)
			return -1;
	return 0;
}
