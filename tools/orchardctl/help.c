/* help.c - the texts of the table, laid out for a terminal of 80 columns and more. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/alloc.h"
#include "orchardctl/help.h"

#include <stdio.h>

const struct option_spec global_options[] = {
	{ "server", GLOBAL_SERVER, "URL", "the server; else SANDBOX_BASE_URL, the context, http://localhost:8000",
		NULL },
	{ "api-key", GLOBAL_KEY, "KEY", "its key; else SANDBOX_API_KEY, the context's", NULL },
	{ "context", GLOBAL_CONTEXT, "NAME", "this context of the configuration file", NULL },
	{ "output", 'o', "FORMAT", "table, json, yaml or name", "table json yaml name" },
	{ "quiet", 'q', NULL, "names only, and no remarks", NULL },
	{ "retry", GLOBAL_RETRY, "TIME", "how long to try again while nobody answers; default 10s, 0: not at all",
		NULL },
	{ "no-color", GLOBAL_NO_COLOR, NULL, "no colours, as with the variable NO_COLOR", NULL },
	{ "help", 'h', NULL, "this text", NULL },
	{ "version", 'V', NULL, "the version of orchardctl", NULL },
	{ NULL, 0, NULL, NULL, NULL },
};

const char help_exit_status[] = "0    done\n"
				"1    the server refused, or it failed\n"
				"2    the command line is wrong\n"
				"3    no answer from the server\n"
				"4    there is no such sandbox or job\n"
				"125  run, exec: the command could not be run\n"
				"N    run, exec, wait: the command's own exit code; 124: its time was over;\n"
				"     128 and the number of the signal that ended it, or orchardctl\n";

const char help_environment[] = "SANDBOX_BASE_URL  the server's URL\n"
				"SANDBOX_API_KEY   the key\n"
				"SANDBOX_PREFIX    comes before every path of the server\n"
				"ORCHARD_CONFIG    the configuration file; else ~/.config/orchard/config.json\n"
				"NO_COLOR          no colours\n";

char *
help_option_text(const struct option_spec *option)
{
	const char *space = option->value != NULL ? " " : "", *value = option->value != NULL ? option->value : "";

	if (option->code < 256)
		return alloc_format("-%c, --%s%s%s", option->code, option->name, space, value);
	return alloc_format("    --%s%s%s", option->name, space, value);
}

static void
print_options(const struct option_spec *options)
{
	for (; options != NULL && options->name != NULL; options++) {
		AUTO_FREE char *text = help_option_text(options);

		printf("  %-24s %s\n", text, options->help);
	}
}

/* Each line with two spaces before it. */
static void
print_indented(const char *lines)
{
	while (*lines != '\0') {
		size_t len = strcspn(lines, "\n");

		printf("%s%.*s\n", len > 0 ? "  " : "", (int)len, lines);
		lines += len + (lines[len] == '\n');
	}
}

static void
print_all(void)
{
	puts("orchardctl - sandboxes of an Orchard server, from the shell\n\n"
	     "usage: orchardctl [OPTION]... COMMAND [ARGUMENT]...");
	for (const struct command *c = command_table; c->name != NULL; c++) {
		if (c->group != NULL)
			printf("\n%s:\n", c->group);
		if (!c->hidden)
			printf("  %-11s %s\n", c->name, c->summary);
	}
	puts("\noptions of every command:");
	print_options(global_options);
	puts("\nenvironment:");
	print_indented(help_environment);
	puts("\nexit status:");
	print_indented(help_exit_status);
	puts("\n'orchardctl COMMAND --help' tells more about a command.");
}

void
help_print(const struct command *command)
{
	if (command == NULL) {
		print_all();
		return;
	}
	printf("orchardctl %s - %s\n\nusage: orchardctl %s%s%s\n", command->name, command->summary, command->name,
		command->words[0] != '\0' ? " " : "", command->words);
	if (command->about != NULL)
		printf("\n%s", command->about);
	if (command->options != NULL) {
		puts("\noptions:");
		print_options(command->options);
	}
	puts("\noptions of every command:");
	print_options(global_options);
	puts("\nexamples:");
	print_indented(command->examples);
}

void
help_version(void)
{
	puts("orchardctl " PACKAGE_VERSION);
}
