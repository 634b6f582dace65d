/* cmd_rm.c - rm: sandboxes by name, by label, or all of them. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/sandbox_view.h"

#include <json-c/json_object.h>
#include <stdio.h>

struct rm {
	struct print_rows rows;
	const char *label;
	bool all, yes, force;
	char **ids; /* borrowed words */
	int count;
};

static int
rm_read(struct args *args, struct rm *rm)
{
	for (;;) {
		switch (args_next(args)) {
		case ARG_END:
			if ((rm->all || rm->label != NULL) == (rm->count > 0)) {
				args_fail(args,
					rm->count > 0 ? "either names, or --all or --label"
						      : "which? Name sandboxes, or give --label or --all");
				return -1;
			}
			return 0;
		case OPT_ALL:
			rm->all = true;
			break;
		case 'l':
			if (!args_label(args, &rm->label))
				return -1;
			break;
		case 'y':
			rm->yes = true;
			break;
		case 'f':
			rm->force = true;
			break;
		case ARG_WORD:
			rm->ids[rm->count++] = args->value;
			break;
		default:
			return -1;
		}
	}
}

/* The exit status. */
static int
rm_one(const struct ctl *ctl, struct rm *rm, const char *id, bool force)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s", id);
	struct request request = { .method = "DELETE", .path = path };
	AUTO_ANSWER answer = { 0 };
	struct err err;

	if (client_call(ctl->client, &request, &answer, &err) < 0)
		return force && err.code == ERR_NOT_FOUND ? CTL_OK : ctl_fail(ctl, &err);
	if (ctl->output_given && !ctl->quiet)
		print_row(ctl, &rm->rows, answer.json);
	else
		puts(id);
	return CTL_OK;
}

static bool
rm_confirm(size_t count)
{
	char answer[16] = "";

	if (!isatty(STDIN_FILENO))
		return true;
	fprintf(stderr, "Remove all %zu sandboxes, and what runs in them? [y/N] ", count);
	return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int
rm_matching(const struct ctl *ctl, struct rm *rm)
{
	struct sandbox_filter filter = { .label = rm->label };
	AUTO_JSON struct json_object *items = NULL;
	int status = CTL_OK;
	struct err err;

	items = sandbox_list(ctl->client, &filter, &err);
	if (items == NULL)
		return ctl_fail(ctl, &err);
	if (json_object_array_length(items) == 0)
		ctl_note(ctl, "there is no such sandbox");
	else if (rm->all && rm->label == NULL && !rm->yes && !rm_confirm(json_object_array_length(items)))
		return CTL_FAILED;
	for (size_t i = 0; i < json_object_array_length(items); i++) {
		/* One that went meanwhile was to go. */
		int one = rm_one(ctl, rm, print_string(json_object_array_get_idx(items, i), "sandbox_id"), true);

		if (status == CTL_OK)
			status = one;
	}
	return status;
}

int
cmd_rm(struct ctl *ctl, int argc, char **argv)
{
	static const struct column columns[] = { { "SANDBOX", "sandbox_id", COLUMN_TEXT, false },
		{ "STATUS", "status", COLUMN_STATUS, false }, { 0 } };
	AUTO_FREE char **ids = must_alloc(calloc((size_t)argc + 1, sizeof *ids));
	struct rm rm = { .rows = { .columns = columns, .name_key = "sandbox_id" }, .ids = ids };
	struct args args;
	int status;

	args_init(&args, ctl, argc, argv);
	if (rm_read(&args, &rm) < 0)
		return args.status;
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	if (rm.count == 0)
		return rm_matching(ctl, &rm);
	for (int i = 0; i < rm.count; i++) {
		int one = rm_one(ctl, &rm, rm.ids[i], rm.force);

		if (status == CTL_OK)
			status = one;
	}
	return status;
}
