/* cmd_resources.c - resources: what there is, and what is asked of it. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

static const struct column columns[] = {
	{ "NODE", "name", COLUMN_TEXT, false },
	{ "CPU", "capacity.cpu", COLUMN_CORES, false },
	{ "ALLOCATABLE", "allocatable.cpu", COLUMN_CORES, false },
	{ "REQUESTED", "requested.cpu", COLUMN_CORES, false },
	{ "AVAILABLE", "available.cpu", COLUMN_CORES, false },
	{ "MEMORY", "capacity.memory_bytes", COLUMN_BYTES, false },
	{ "ALLOCATABLE", "allocatable.memory_bytes", COLUMN_BYTES, false },
	{ "REQUESTED", "requested.memory_bytes", COLUMN_BYTES, false },
	{ "AVAILABLE", "available.memory_bytes", COLUMN_BYTES, false },
	{ NULL, NULL, COLUMN_TEXT, false },
};

static void
add(struct json_object *row, const char *name, struct json_object *all, const char *member)
{
	json_object_object_add(row, name, json_object_get(print_member(all, member)));
}

/* The nodes, and below them all together. What is asked for is known of all together, and so of one that is alone. */
static void
print_rows(const struct ctl *ctl, struct json_object *all)
{
	AUTO_JSON struct json_object *rows = must_alloc(json_object_new_array());
	struct json_object *nodes = print_array(all, "nodes"), *total = must_alloc(json_object_new_object());

	if (nodes != NULL && json_object_array_length(nodes) == 1) {
		add(json_object_array_get_idx(nodes, 0), "requested", all, "total_requested");
		add(json_object_array_get_idx(nodes, 0), "available", all, "available");
	}
	for (size_t i = 0; nodes != NULL && i < json_object_array_length(nodes); i++)
		json_object_array_add(rows, json_object_get(json_object_array_get_idx(nodes, i)));
	json_object_object_add(total, "name", must_alloc(json_object_new_string("(all)")));
	add(total, "capacity", all, "total_capacity");
	add(total, "allocatable", all, "total_allocatable");
	add(total, "requested", all, "total_requested");
	add(total, "available", all, "available");
	if (print_output(ctl) == OUTPUT_NAME)
		json_object_put(total); /* it is no name of anything */
	else
		json_object_array_add(rows, total);
	print_list(ctl, rows, columns, "name", "");
}

int
cmd_resources(struct ctl *ctl, int argc, char **argv)
{
	AUTO_JSON struct json_object *all = NULL;
	struct args args;
	struct err err;
	int status;

	args_init(&args, ctl, argc, argv);
	if (!args_nothing(&args))
		return args.status;
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	all = client_get(ctl->client, "/resources", &err);
	if (all == NULL)
		return ctl_fail(ctl, &err);
	if (ctl->output == OUTPUT_JSON || ctl->output == OUTPUT_YAML)
		print_one(ctl, all, columns, "name");
	else
		print_rows(ctl, all);
	return CTL_OK;
}
