/* finding.c - lines for people as they come, a list for programs at the end. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/doctor/finding.h"

#include "base/alloc.h"
#include "base/cleanup.h"
#include "orchardctl/command.h"
#include "orchardctl/output/cell.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
	const char *name, *color;
} levels[] = {
	[FINDING_OK] = { "ok", "\033[32m" },
	[FINDING_WARN] = { "warn", "\033[33m" },
	[FINDING_FAIL] = { "FAIL", "\033[31m" },
};

void
findings_init(struct findings *findings, const struct ctl *ctl)
{
	*findings = (struct findings){ .ctl = ctl, .list = must_alloc(json_object_new_array()) };
}

static void
print_line(const struct ctl *ctl, enum finding_level level, const char *what, const char *words, const char *cure)
{
	AUTO_FREE char *shown = cell_line(words);
	bool colored = ctl_is_colored(ctl, STDOUT_FILENO);

	if (ctl->output != OUTPUT_TABLE || (ctl->quiet && level == FINDING_OK))
		return;
	printf("%s%-4s%s  %-13s %s\n", colored ? levels[level].color : "", levels[level].name,
		colored ? PRINT_COLOR_END : "", what, shown);
	if (cure != NULL)
		printf("%21s-> %s\n", "", cure);
	fflush(stdout);
}

void
finding_add(struct findings *findings, enum finding_level level, const char *what, const char *cure,
	const char *fmt, ...)
{
	struct json_object *item = must_alloc(json_object_new_object());
	AUTO_FREE char *words = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&words, fmt, args) < 0)
		abort();
	va_end(args);
	/* What an error says in more lines is advice, and that is what the cure is for. */
	words[strcspn(words, "\n")] = '\0';
	findings->warnings += level == FINDING_WARN;
	findings->failures += level == FINDING_FAIL;
	print_line(findings->ctl, level, what, words, cure);
	json_object_object_add(item, "check", json_object_new_string(what));
	json_object_object_add(
		item, "result", json_object_new_string(level == FINDING_FAIL ? "fail" : levels[level].name));
	json_object_object_add(item, "message", json_object_new_string(words));
	json_object_object_add(item, "cure", cure != NULL ? json_object_new_string(cure) : NULL);
	json_object_array_add(findings->list, item);
}

void
findings_end(struct findings *findings)
{
	switch (findings->ctl->output) {
	case OUTPUT_JSON:
		print_json(findings->list);
		break;
	case OUTPUT_YAML:
		print_yaml(findings->list);
		break;
	case OUTPUT_NAME:
		for (size_t i = 0; i < json_object_array_length(findings->list); i++) {
			struct json_object *item = json_object_array_get_idx(findings->list, i);

			if (strcmp(print_string(item, "result"), "fail") == 0)
				puts(print_string(item, "check"));
		}
		break;
	case OUTPUT_TABLE:
		ctl_note(findings->ctl, "%u wrong, %u doubtful, of %zu checks", findings->failures,
			findings->warnings, json_object_array_length(findings->list));
		break;
	}
	free(findings->metrics);
	json_object_put(findings->list);
	findings->list = NULL;
}
