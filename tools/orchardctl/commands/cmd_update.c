/* cmd_update.c - update: labels and life of a sandbox. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/sandbox_view.h"
#include "orchardctl/commands/spec.h"

#include <json-c/json.h>

struct update {
	struct json_object *body; /* owned */
	struct json_object *gone; /* owned: labels to take away */
	char **ids; /* borrowed words */
	int count;
};

static int
read_line(struct args *args, struct update *update)
{
	for (int code; (code = args_next(args)) != ARG_END;) {
		if (code == ARG_STOP)
			return -1;
		if (code == ARG_WORD)
			update->ids[update->count++] = args->value;
		else if (code == OPT_REMOVE_LABEL)
			spec_set_string(update->gone, args->value, "");
		else if (spec_take_sandbox(args, code, update->body) < 0)
			return -1;
	}
	if (update->count == 0)
		args_fail(args, "which sandbox? 'orchardctl ls' lists them");
	else if (json_object_object_length(update->body) + json_object_object_length(update->gone) == 0)
		args_fail(args, "what? --label, --remove-label, --ttl or --idle-timeout");
	else
		return 0;
	return -1;
}

/* The server replaces all labels; here only those that are named change. */
static void
merge_labels(const struct update *update, struct json_object *box, struct json_object *body)
{
	struct json_object *labels = must_alloc(json_object_new_object()), *old = print_member(box, "labels");
	struct json_object *new = print_member(update->body, "labels");

	if (json_object_is_type(old, json_type_object)) {
		json_object_object_foreach(old, name, value)
		{
			if (!json_object_object_get_ex(update->gone, name, NULL))
				json_object_object_add(labels, name, json_object_get(value));
		}
	}
	if (json_object_is_type(new, json_type_object)) {
		json_object_object_foreach(new, new_name, new_value)
		{
			json_object_object_add(labels, new_name, json_object_get(new_value));
		}
	}
	json_object_object_add(body, "labels", labels);
}

static int
update_one(const struct ctl *ctl, const struct update *update, const char *id)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s", id);
	AUTO_JSON struct json_object *box = NULL, *body = must_alloc(json_object_new_object());
	struct request request = { .method = "PATCH", .path = path, .body = body };
	AUTO_ANSWER answer = { 0 };
	struct err err;

	json_object_object_foreach(update->body, member, value)
	{
		json_object_object_add(body, member, json_object_get(value));
	}
	if (print_member(update->body, "labels") != NULL || json_object_object_length(update->gone) > 0) {
		box = client_get(ctl->client, path, &err);
		if (box == NULL)
			return ctl_fail(ctl, &err);
		merge_labels(update, box, body);
	}
	if (client_call(ctl->client, &request, &answer, &err) < 0)
		return ctl_fail(ctl, &err);
	if (ctl->output_given && answer.json != NULL)
		print_one(ctl, answer.json, sandbox_columns, "sandbox_id");
	else
		puts(id);
	return CTL_OK;
}

int
cmd_update(struct ctl *ctl, int argc, char **argv)
{
	AUTO_FREE char **ids = must_alloc(calloc((size_t)argc + 1, sizeof *ids));
	AUTO_JSON struct json_object *body = must_alloc(json_object_new_object());
	AUTO_JSON struct json_object *gone = must_alloc(json_object_new_object());
	struct update update = { .body = body, .gone = gone, .ids = ids };
	struct args args;
	int status;

	args_init(&args, ctl, argc, argv);
	if (read_line(&args, &update) < 0)
		return args.status;
	status = ctl_open(ctl);
	for (int i = 0; status == CTL_OK && i < update.count; i++)
		status = update_one(ctl, &update, ids[i]);
	return status;
}
