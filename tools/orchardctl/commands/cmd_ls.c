/* cmd_ls.c - ls: sandboxes, once or as they change. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/sandbox_view.h"

#include <json-c/json.h>
#include <poll.h>
#include <unistd.h>

struct ls {
	struct sandbox_filter filter;
	bool watch;
	double interval_s;
};

static int
ls_read(struct args *args, struct ls *ls)
{
	for (;;) {
		switch (args_next(args)) {
		case ARG_END:
			return 0;
		case 'w':
			ls->watch = true;
			break;
		case 'l':
			if (!args_label(args, &ls->filter.label))
				return -1;
			break;
		case 'n':
			if (!args_whole(args, "--limit", 1, 1000000, &ls->filter.limit))
				return -1;
			break;
		case OPT_STATUS:
			ls->filter.status = args->value;
			break;
		case OPT_INTERVAL:
			if (!args_duration(args, "--interval", &ls->interval_s))
				return -1;
			break;
		case ARG_WORD:
			args_fail(args, "what is \"%s\"? One sandbox is shown by 'orchardctl get'", args->value);
			return -1;
		default:
			return -1;
		}
	}
}

/* What tells a sandbox apart from how it was seen before. */
static bool
is_same(struct json_object *a, struct json_object *b)
{
	static const char *const keys[] = { "created_at", "status", "status_message", "ready", "labels",
		"expires_by" };

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (!json_object_equal(print_member(a, keys[i]), print_member(b, keys[i])))
			return false;
	return true;
}

/* An object of them by id; takes over items. */
static struct json_object *
by_id(struct json_object *items)
{
	struct json_object *all = must_alloc(json_object_new_object());

	for (size_t i = json_object_array_length(items); i > 0; i--) {
		struct json_object *item = json_object_array_get_idx(items, i - 1);

		json_object_object_add(all, print_string(item, "sandbox_id"), json_object_get(item));
	}
	json_object_put(items);
	return all;
}

static void
print_changes(const struct ctl *ctl, struct print_rows *rows, struct json_object *before, struct json_object *now)
{
	json_object_object_foreach(now, id, item)
	{
		struct json_object *old = NULL;

		if (!json_object_object_get_ex(before, id, &old) || !is_same(old, item))
			print_row(ctl, rows, item);
	}
	json_object_object_foreach(before, gone_id, gone)
	{
		if (json_object_object_get_ex(now, gone_id, NULL))
			continue;
		json_object_object_add(gone, "status", must_alloc(json_object_new_string("deleted")));
		print_row(ctl, rows, gone);
	}
}

/* Whoever read our output has gone: nothing that would come is of use. */
static bool
is_unread(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return poll(&out, 1, 0) > 0 && (out.revents & (POLLERR | POLLNVAL)) != 0;
}

static int
ls_watch(const struct ctl *ctl, const struct ls *ls)
{
	AUTO_JSON struct json_object *before = must_alloc(json_object_new_object());
	struct print_rows rows = { .columns = sandbox_columns, .name_key = "sandbox_id" };
	struct err err;

	for (;;) {
		struct json_object *items = sandbox_list(ctl->client, &ls->filter, &err), *now;

		if (items == NULL)
			return ctl_fail(ctl, &err);
		now = by_id(items);
		print_changes(ctl, &rows, before, now);
		json_object_put(before);
		before = now;
		if (ferror(stdout) || is_unread())
			return CTL_FAILED;
		client_pause(ctl->client, (int64_t)(ls->interval_s * 1000));
	}
}

int
cmd_ls(struct ctl *ctl, int argc, char **argv)
{
	struct ls ls = { .interval_s = 1 };
	AUTO_JSON struct json_object *items = NULL;
	struct args args;
	struct err err;
	int status;

	args_init(&args, ctl, argc, argv);
	if (ls_read(&args, &ls) < 0)
		return args.status;
	status = ctl_open(ctl);
	if (status != 0)
		return status;
	if (ls.watch)
		return ls_watch(ctl, &ls);
	items = sandbox_list(ctl->client, &ls.filter, &err);
	if (items == NULL)
		return ctl_fail(ctl, &err);
	print_list(
		ctl, items, sandbox_columns, "sandbox_id", "there are no sandboxes; 'orchardctl create' makes one");
	return CTL_OK;
}
