/* cmd_version.c - version: of orchardctl and of the server. */
/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

static const struct column columns[] = {
	{ "CLIENT", "client", COLUMN_TEXT, false },
	{ "SERVER", "server", COLUMN_TEXT, false },
	{ "URL", "url", COLUMN_TEXT, false },
	{ NULL, NULL, COLUMN_TEXT, false },
};

int
cmd_version(struct ctl *ctl, int argc, char **argv)
{
	AUTO_JSON struct json_object *all = must_alloc(json_object_new_object()), *about = NULL;
	bool client_only = false;
	struct args args;
	struct err err;
	int code, status;

	args_init(&args, ctl, argc, argv);
	while ((code = args_next(&args)) == OPT_CLIENT)
		client_only = true;
	if (code == ARG_WORD)
		return args_fail(&args, "what is \"%s\"?", args.value);
	if (code != ARG_END)
		return args.status;
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	json_object_object_add(all, "client", must_alloc(json_object_new_string(PACKAGE_VERSION)));
	if (!client_only) {
		about = client_get(ctl->client, "/", &err);
		if (about == NULL)
			status = ctl_fail(ctl, &err);
		json_object_object_add(all, "server", json_object_get(print_member(about, "version")));
		json_object_object_add(all, "url", must_alloc(json_object_new_string(ctl->server.url)));
	}
	print_one(ctl, all, columns, "client");
	return status;
}
