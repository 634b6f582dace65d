/* cmd_man.c - man: orchardctl.1 in man(7), for the build. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/cleanup.h"
#include "orchardctl/args.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/help.h"

#include <stdio.h>
#include <string.h>

/* Characters that roff would take for its own. */
static void
print_text(const char *text, size_t len)
{
	if (len > 0 && (text[0] == '.' || text[0] == '\''))
		printf("\\&");
	for (size_t i = 0; i < len; i++) {
		switch (text[i]) {
		case '\\':
			printf("\\e");
			break;
		case '-':
			printf("\\-");
			break;
		case '\'':
			printf("\\(aq");
			break;
		case '~':
			printf("\\(ti");
			break;
		case '^':
			printf("\\(ha");
			break;
		case '`':
			printf("\\(ga");
			break;
		default:
			putchar(text[i]);
		}
	}
}

static void
print_line(const char *text)
{
	print_text(text, strlen(text));
	putchar('\n');
}

/* Paragraphs; lines that are indented stand as they are. */
static void
print_about(const char *text)
{
	bool literal = false;

	while (*text != '\0') {
		size_t len = strcspn(text, "\n");
		bool indented = text[0] == ' ';

		if (len > 0 && indented != literal) {
			puts(indented ? ".PP\n.nf" : ".fi\n.PP");
			literal = indented;
		} else if (len == 0 && !literal) {
			puts(".PP");
		}
		if (len > 0) {
			print_text(text, len);
			putchar('\n');
		}
		text += len + (text[len] == '\n');
	}
	if (literal)
		puts(".fi");
}

static void
print_literal(const char *text)
{
	puts(".PP\n.nf\n.RS 4");
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		print_text(text, len);
		putchar('\n');
		text += len + (text[len] == '\n');
	}
	puts(".RE\n.fi");
}

static void
print_options(const struct option_spec *options)
{
	for (; options != NULL && options->name != NULL; options++) {
		AUTO_FREE char *text = help_option_text(options);

		printf(".TP\n.B ");
		print_line(text + strspn(text, " "));
		print_line(options->help);
	}
}

static void
print_command(const struct command *command)
{
	printf(".SS ");
	print_line(command->name);
	printf(".PP\n.B orchardctl %s\n", command->name);
	if (command->words[0] != '\0')
		print_line(command->words);
	puts(".PP");
	print_about(command->about);
	print_options(command->options);
	print_literal(command->examples);
}

static void
print_page(void)
{
	puts(".TH ORCHARDCTL 1 \"\" \"orchard " PACKAGE_VERSION "\" \"Orchard\"\n"
	     ".SH NAME\n"
	     "orchardctl \\- sandboxes of an Orchard server, from the shell\n"
	     ".SH SYNOPSIS\n"
	     ".B orchardctl\n"
	     "[OPTION]... COMMAND [ARGUMENT]...\n"
	     ".SH DESCRIPTION\n"
	     "Makes sandboxes on an Orchard server, runs commands in them, moves files, and takes them away "
	     "again.\n"
	     "Results go to stdout, everything else to stderr. Requests that get no answer, or come when the "
	     "server is\n"
	     "busy, are sent again; no command ever runs twice by that.\n"
	     ".PP\n"
	     "A TIME is a number of seconds, or has a unit: 90s, 15m, 2h, 1d.\n"
	     ".SH OPTIONS\n"
	     "These are taken before and behind every command.");
	print_options(global_options);
	puts(".SH COMMANDS");
	for (const struct command *c = command_table; c->name != NULL; c++)
		if (!c->hidden)
			print_command(c);
	puts(".SH ENVIRONMENT");
	print_literal(help_environment);
	puts(".SH FILES\n.TP\n.I \\(ti/.config/orchard/config.json\ncontexts: servers and their keys, by name");
	puts(".SH EXIT STATUS");
	print_literal(help_exit_status);
}

int
cmd_man(struct ctl *ctl, int argc, char **argv)
{
	struct args args;

	args_init(&args, ctl, argc, argv);
	if (!args_nothing(&args))
		return args.status;
	print_page();
	return CTL_OK;
}
