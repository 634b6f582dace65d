/* cmd_get.c - get: sandboxes and jobs, with everything that is known of them. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/job_view.h"
#include "orchardctl/commands/sandbox_view.h"

#include <json-c/json_object.h>
#include <stdio.h>

/* A job's id is a UUID; a sandbox may be called like that, too, if somebody wants it so. */
static struct json_object *
get_one(struct client *client, const char *id, struct err *err)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s", id);

	if (id_is_uuid(id)) {
		AUTO_FREE char *job_path = path_format("/jobs/%s", id);
		struct json_object *job = client_get(client, job_path, err);

		if (job != NULL || err->code != ERR_NOT_FOUND)
			return job;
	}
	return client_get(client, path, err);
}

static void
show(const struct ctl *ctl, struct json_object *item)
{
	if (print_member(item, "job_id") != NULL)
		print_one(ctl, item, job_columns, "job_id");
	else
		print_one(ctl, item, sandbox_columns, "sandbox_id");
}

/* What was asked for by one name as itself, by several as a list, however many of them are there. */
static void
show_all(const struct ctl *ctl, struct json_object *items, int asked)
{
	size_t count = json_object_array_length(items);

	if (asked > 1 && ctl->output == OUTPUT_JSON) {
		print_json(items);
		return;
	}
	if (asked > 1 && ctl->output == OUTPUT_YAML) {
		print_yaml(items);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && ctl->output == OUTPUT_TABLE && !ctl->quiet)
			putchar('\n');
		show(ctl, json_object_array_get_idx(items, i));
	}
}

int
cmd_get(struct ctl *ctl, int argc, char **argv)
{
	AUTO_JSON struct json_object *items = must_alloc(json_object_new_array());
	AUTO_FREE char **ids = must_alloc(calloc((size_t)argc + 1, sizeof *ids));
	int status, count;
	struct args args;
	struct err err;

	args_init(&args, ctl, argc, argv);
	count = args_words(&args, ids);
	if (count < 0)
		return args.status;
	if (count == 0)
		return args_fail(&args, "which sandbox or job? 'orchardctl ls' lists sandboxes");
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	for (int i = 0; i < count && status != CTL_UNREACHABLE; i++) {
		struct json_object *item = get_one(ctl->client, ids[i], &err);
		int one = item != NULL ? CTL_OK : ctl_fail(ctl, &err);

		if (item != NULL)
			json_object_array_add(items, item);
		if (status == CTL_OK)
			status = one;
	}
	show_all(ctl, items, count);
	return status;
}
