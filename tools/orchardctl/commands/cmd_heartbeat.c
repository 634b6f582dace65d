/* cmd_heartbeat.c - heartbeat: somebody still needs these sandboxes. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"

static int
beat(const struct ctl *ctl, const char *id)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/heartbeat", id);
	struct request request = { .method = "POST", .path = path };
	struct err err;

	return client_call(ctl->client, &request, NULL, &err) < 0 ? ctl_fail(ctl, &err) : CTL_OK;
}

int
cmd_heartbeat(struct ctl *ctl, int argc, char **argv)
{
	AUTO_FREE char **ids = must_alloc(calloc((size_t)argc + 1, sizeof *ids));
	double every_s = 0;
	struct args args;
	int status, count = 0;

	args_init(&args, ctl, argc, argv);
	for (int code; (code = args_next(&args)) != ARG_END;) {
		if (code == ARG_WORD)
			ids[count++] = args.value;
		else if (code != OPT_EVERY || !args_duration(&args, "--every", &every_s))
			return args.status;
	}
	if (count == 0)
		return args_fail(&args, "of which sandbox? 'orchardctl ls' lists them");
	status = ctl_open(ctl);
	do {
		for (int i = 0; status == CTL_OK && i < count; i++)
			status = beat(ctl, ids[i]);
	} while (status == CTL_OK && every_s > 0 && client_pause(ctl->client, (int64_t)(every_s * 1000)));
	return status;
}
