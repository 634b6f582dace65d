/* cmd_complete.c - __complete: what the word that is being typed may become. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/complete/line.h"
#include "orchardctl/complete/offer.h"
#include "orchardctl/contexts.h"
#include "orchardctl/copy/place.h"

#include <json-c/json.h>
#include <stdio.h>
#include <unistd.h>

#define VERBS  "get-contexts current-context use-context set-context delete-context view"
#define IMAGES "default"
#define SHELLS "bash zsh fish"

static void
offer_commands(const struct line *line)
{
	for (const struct command *c = command_table; c->name != NULL; c++)
		if (!c->hidden)
			offer(line, c->name, NULL, c->summary);
}

static void
offer_table(const struct line *line, const struct option_spec *options)
{
	for (; options != NULL && options->name != NULL; options++) {
		AUTO_FREE char *name = alloc_format("--%s", options->name);

		offer(line, name, NULL, options->help);
	}
}

static void
offer_contexts(const struct line *line)
{
	AUTO_CONTEXTS contexts = { 0 };
	struct err err;

	if (contexts_load(&contexts, &err) != 0)
		return;
	json_object_object_foreach(contexts_all(&contexts), name, context)
	{
		AUTO_FREE char *about = json_object_object_get(context, "server") != NULL
			? alloc_string(json_object_get_string(json_object_object_get(context, "server")))
			: NULL;

		offer(line, name, NULL, about);
	}
}

static void
offer_value(const struct line *line)
{
	const struct option_spec *option = line->option;

	if (option->choices != NULL)
		offer_words(line, option->choices);
	else if (option->value != NULL && strcmp(option->value, "FILE") == 0)
		offer_files();
	else if (strcmp(option->name, "context") == 0)
		offer_contexts(line);
}

/* "x1:/etc/pa": the sandbox is known, its path goes on; else a sandbox or a file here. */
static void
offer_places(const struct ctl *ctl, const struct line *line)
{
	AUTO_FREE char *before = NULL;
	struct place place;

	place_read(&place, line->typed);
	if (place.sandbox != NULL) {
		before = alloc_format("%s:", place.sandbox);
		offer_paths(ctl, line, place.sandbox, before, strchr(line->typed, ':') + 1);
	} else {
		if (strpbrk(line->typed, "/.~:") == NULL)
			offer_sandboxes(ctl, line, ":");
		offer_files();
	}
	place_fini(&place);
}

static void
offer_first(const struct ctl *ctl, const struct line *line)
{
	enum word_kind kind = line->command->word_kind;

	if (kind == WORD_SHELL)
		offer_words(line, SHELLS);
	else if (kind == WORD_COMMAND)
		offer_commands(line);
	else if (kind == WORD_CONFIG)
		offer_words(line, VERBS);
	else if (kind == WORD_IMAGE)
		offer_words(line, IMAGES);
	else if (kind != WORD_NONE)
		offer_sandboxes(ctl, line, NULL);
	if (kind == WORD_THING)
		offer_jobs(ctl, line, false);
}

static void
offer_any(const struct ctl *ctl, const struct line *line)
{
	switch (line->command->word_kind) {
	case WORD_PATHS:
		offer_places(ctl, line);
		break;
	case WORD_SANDBOXES:
		offer_sandboxes(ctl, line, NULL);
		break;
	case WORD_THINGS:
		offer_sandboxes(ctl, line, NULL);
		offer_jobs(ctl, line, false);
		break;
	case WORD_JOBS:
		offer_jobs(ctl, line, true);
		break;
	default:
		if (line->words == 0)
			offer_first(ctl, line);
		else if (line->command->word_kind == WORD_PATCH && line->words == 1)
			offer_files();
		else if (line->command->word_kind == WORD_PROGRAM && strchr(line->typed, '/') != NULL)
			offer_paths(ctl, line, line->first, "", line->typed);
		else if (line->command->word_kind == WORD_CONFIG && line->words == 1 &&
			strstr(line->first, "-context") != NULL && strcmp(line->first, "current-context") != 0)
			offer_contexts(line);
	}
}

int
cmd_complete(struct ctl *ctl, int argc, char **argv)
{
	struct line line;

	if (argc < 2)
		return CTL_USAGE;
	line_read(&line, ctl, argv + 1, argc - 1);
	ctl->retry_seconds = 0;
	ctl->quiet = true;
	if (line.option != NULL) {
		offer_value(&line);
	} else if (line.is_option) {
		if (line.command != NULL)
			offer_table(&line, line.command->options);
		offer_table(&line, global_options);
	} else if (line.command == NULL) {
		offer_commands(&line);
	} else {
		int status = ctl_open(ctl);

		if (status != CTL_OK)
			return status;
		offer_any(ctl, &line);
	}
	return CTL_OK;
}
