/* remote.c - what is at a path in the sandbox. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/copy/copy.h"

#include "base/alloc.h"
#include "base/json.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/command.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

char *
remote_path(const struct copy *copy, const char *what, const char *path)
{
	AUTO_FREE char *base = path_format("/sandboxes/%s", copy->sandbox);
	char *whole = alloc_format("%s/%s", base, what);

	path_add(&whole, "path", path);
	path_add(&whole, "user", copy->user);
	return whole;
}

static void
read_stat(struct json_object *stat, struct remote *ret_remote)
{
	const char *type = print_string(stat, "type"), *kind = print_string(stat, "kind");
	struct json_object *size = print_member(stat, "size");

	*ret_remote = (struct remote){ .kind = strcmp(type, "directory") == 0 ? REMOTE_DIRECTORY : REMOTE_FILE,
		.mode = (mode_t)strtoul(print_string(stat, "mode"), NULL, 8),
		.size = size != NULL && *kind != '\0' ? json_object_get_int64(size) : -1 };
}

int
remote_look(const struct copy *copy, const char *path, struct remote *ret_remote, struct err *err)
{
	AUTO_FREE char *stat_path = remote_path(copy, "files/stat", path);
	AUTO_FREE char *box_path = path_format("/sandboxes/%s", copy->sandbox);
	AUTO_JSON struct json_object *stat = client_get(copy->ctl->client, stat_path, err), *box = NULL;

	if (stat != NULL) {
		read_stat(stat, ret_remote);
		return 0;
	}
	if (err->code != ERR_NOT_FOUND)
		return -1;
	box = client_get(copy->ctl->client, box_path, err);
	if (box == NULL)
		return -1;
	*ret_remote = (struct remote){ .kind = REMOTE_NOTHING };
	return 0;
}
