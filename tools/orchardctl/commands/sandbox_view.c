/* sandbox_view.c - columns of a sandbox, and its pages joined. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/commands/sandbox_view.h"
#include "base/alloc.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"

#include <json-c/json_object.h>

enum { PAGE = 1000 };

const struct column sandbox_columns[] = {
	{ "SANDBOX", "sandbox_id", COLUMN_TEXT, false },
	{ "STATUS", "status", COLUMN_STATUS, false },
	{ "MESSAGE", "status_message", COLUMN_TEXT, true },
	{ "READY", "ready", COLUMN_BOOL, true },
	{ "CPU", "cpu", COLUMN_TEXT, false },
	{ "MEMORY", "memory", COLUMN_TEXT, false },
	{ "DISK", "disk", COLUMN_TEXT, true },
	{ "AGE", "created_at", COLUMN_SINCE, false },
	{ "EXPIRES IN", "expires_at", COLUMN_UNTIL, false },
	{ "EXPIRES BY", "expires_by", COLUMN_TEXT, true },
	{ "LAST HEARTBEAT", "last_heartbeat", COLUMN_SINCE, true },
	{ "NETWORK BLOCKED", "block_network", COLUMN_BOOL, true },
	{ "EGRESS", "egress", COLUMN_TEXT, true },
	{ "USED CPU", "usage.cpu_s", COLUMN_SECONDS, true },
	{ "USED MEMORY", "usage.memory_bytes", COLUMN_BYTES, true },
	{ "MOST MEMORY", "usage.memory_peak_bytes", COLUMN_BYTES, true },
	{ "USED DISK", "usage.disk_bytes", COLUMN_BYTES, true },
	{ "PROCESSES", "usage.pids", COLUMN_TEXT, true },
	{ "LABELS", "labels", COLUMN_MAP, false },
	{ "IMAGE", "image", COLUMN_TEXT, false },
	{ NULL, NULL, COLUMN_TEXT, false },
};

static char *
page_path(const struct sandbox_filter *filter, long long limit, const char *cursor)
{
	AUTO_FREE char *count = alloc_format("%lld", limit);
	char *path = path_format("/sandboxes");

	path_add(&path, "limit", count);
	path_add(&path, "label", filter->label);
	path_add(&path, "status", filter->status);
	path_add(&path, "cursor", cursor);
	return path;
}

struct json_object *
sandbox_list(struct client *client, const struct sandbox_filter *filter, struct err *err)
{
	AUTO_JSON struct json_object *all = must_alloc(json_object_new_array());
	AUTO_FREE char *cursor = NULL;

	for (;;) {
		long long left = filter->limit > 0 ? filter->limit - (long long)json_object_array_length(all)
						   : PAGE;
		AUTO_FREE char *path = page_path(filter, left < PAGE ? left : PAGE, cursor);
		AUTO_JSON struct json_object *page = client_get(client, path, err);
		struct json_object *items;

		if (page == NULL)
			return NULL;
		items = print_array(page, "sandboxes");
		for (size_t i = 0; items != NULL && i < json_object_array_length(items); i++)
			json_object_array_add(all, json_object_get(json_object_array_get_idx(items, i)));
		free(cursor);
		cursor = alloc_string(print_string(page, "next_cursor"));
		if (cursor[0] == '\0' ||
			(filter->limit > 0 && (long long)json_object_array_length(all) >= filter->limit))
			return STEAL_PTR(all);
	}
}
