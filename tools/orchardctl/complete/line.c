/* line.c - words as args reads them, but for what is wrong with them: they are not finished. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/complete/line.h"

#include "orchardctl/args.h"
#include "orchardctl/help.h"

struct reading {
	struct line *line;
	struct ctl *ctl;
	const struct option_spec *option; /* waits for its value */
	bool words_only;
};

static void
take_value(struct reading *reading, char *value)
{
	switch (reading->option->code) {
	case GLOBAL_SERVER:
		reading->ctl->server_flag = value;
		break;
	case GLOBAL_KEY:
		reading->ctl->key_flag = value;
		break;
	case GLOBAL_CONTEXT:
		reading->ctl->context_flag = value;
		break;
	}
	reading->option = NULL;
}

static void
take_long(struct reading *reading, char *word)
{
	char *equals = strchr(word, '=');
	size_t len = equals != NULL ? (size_t)(equals - word) : strlen(word);
	const struct option_spec *option = args_option(reading->line->command, word + 2, len - 2, 0);

	reading->option = option != NULL && option->value != NULL ? option : NULL;
	if (reading->option != NULL && equals != NULL)
		take_value(reading, equals + 1);
}

static void
take_short(struct reading *reading, char *letters)
{
	for (; *letters != '\0'; letters++) {
		const struct option_spec *option = args_option(
			reading->line->command, NULL, 0, (unsigned char)*letters);

		if (option == NULL || option->value == NULL)
			continue;
		reading->option = option;
		if (letters[1] != '\0')
			take_value(reading, letters + 1);
		return;
	}
}

/* Behind the first words of these, all is the command that is to be run. */
static bool
begins_foreign(const struct line *line)
{
	return line->command != NULL && line->words == 2 &&
		(line->command->word_kind == WORD_PROGRAM || line->command->word_kind == WORD_IMAGE);
}

static void
take_word(struct reading *reading, const char *word)
{
	struct line *line = reading->line;

	if (line->command == NULL) {
		line->command = command_find(word);
		return;
	}
	if (line->words++ == 0)
		line->first = word;
	reading->words_only |= begins_foreign(line);
}

static void
take(struct reading *reading, char *word)
{
	if (reading->option != NULL)
		take_value(reading, word);
	else if (reading->words_only || word[0] != '-' || word[1] == '\0')
		take_word(reading, word);
	else if (strcmp(word, "--") == 0)
		reading->words_only = true;
	else if (word[1] == '-')
		take_long(reading, word);
	else
		take_short(reading, word + 1);
}

void
line_read(struct line *line, struct ctl *ctl, char **words, int count)
{
	struct reading reading = { .line = line, .ctl = ctl };
	char *last = words[count - 1], *equals = strchr(last, '=');

	*line = (struct line){ .typed = last, .before = "" };
	for (int i = 0; i < count - 1; i++)
		take(&reading, words[i]);
	line->option = reading.option;
	if (reading.option != NULL || reading.words_only || last[0] != '-')
		return;
	if (equals == NULL || last[1] != '-') {
		line->is_option = true;
		return;
	}
	line->option = args_option(line->command, last + 2, (size_t)(equals - last - 2), 0);
	line->before = last;
	line->before_len = (int)(equals + 1 - last);
	line->typed = equals + 1;
}
