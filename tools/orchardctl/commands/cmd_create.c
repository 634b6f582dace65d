/* cmd_create.c - create: a sandbox that stays. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/make.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/sandbox_view.h"
#include "orchardctl/commands/spec.h"

#include <json-c/json_object.h>
#include <stdio.h>

struct create {
	struct json_object *body; /* owned */
	const char *image;
	bool no_wait;
};

static int
read_line(struct args *args, struct create *create)
{
	for (;;) {
		int code = args_next(args), taken;

		switch (code) {
		case ARG_END:
			return 0;
		case ARG_STOP:
			return -1;
		case ARG_WORD:
			if (create->image != NULL) {
				args_fail(args, "one image, please; what is \"%s\"?", args->value);
				return -1;
			}
			create->image = args->value;
			continue;
		case OPT_NO_WAIT:
			create->no_wait = true;
			continue;
		case 'e':
			taken = spec_add_pair(args, "--env", create->body, "env");
			break;
		case 'w':
			spec_set_string(create->body, "working_dir", args->value);
			continue;
		default:
			taken = spec_take_sandbox(args, code, create->body);
		}
		if (taken < 0)
			return -1;
	}
}

/* The server's longest time for a sandbox to become ready. */
static double
ready_seconds(struct json_object *made)
{
	struct json_object *timeout = print_member(made, "timeout");

	return timeout != NULL ? json_object_get_double(timeout) + 60 : 3600;
}

static int
create_it(const struct ctl *ctl, struct create *create)
{
	AUTO_JSON struct json_object *made = NULL, *ready = NULL;
	const char *id;
	struct err err;
	int status = CTL_OK;

	spec_set_string(create->body, "image", create->image != NULL ? create->image : "default");
	made = make_sandbox(ctl->client, create->body, &err);
	if (made == NULL)
		return ctl_fail(ctl, &err);
	id = print_string(made, "sandbox_id");
	if (!create->no_wait) {
		ready = make_wait_ready(ctl->client, id, ready_seconds(made), &err);
		if (ready == NULL)
			status = ctl_fail(ctl, &err);
	}
	if (ctl->output_given)
		print_one(ctl, ready != NULL ? ready : made, sandbox_columns, "sandbox_id");
	else
		puts(id);
	return status;
}

int
cmd_create(struct ctl *ctl, int argc, char **argv)
{
	struct create create = { .body = must_alloc(json_object_new_object()) };
	struct args args;
	int status;

	args_init(&args, ctl, argc, argv);
	if (read_line(&args, &create) < 0)
		status = args.status;
	else
		status = ctl_open(ctl);
	if (status == CTL_OK && ctl->client != NULL)
		status = create_it(ctl, &create);
	json_object_put(create.body);
	return status;
}
