/* cmd_wait.c - wait: until a job has ended, or a sandbox is ready. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/attach/attach.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/job_view.h"
#include "orchardctl/commands/make.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/sandbox_view.h"

#include <json-c/json_object.h>

enum { PIECE_MS = 50000 };

static struct json_object *
wait_job(struct client *client, const char *id, double timeout_s, struct err *err)
{
	int64_t end = clock_boot_ms() + (int64_t)(timeout_s * 1000);

	for (;;) {
		int64_t left = end - clock_boot_ms(), piece = left < 0 ? 0 : left < PIECE_MS ? left : PIECE_MS;
		AUTO_FREE char *timeout = alloc_format("%.3f", (double)piece / 1000);
		AUTO_FREE char *path = path_format("/jobs/%s/wait?timeout=%s", id, timeout);
		AUTO_JSON struct json_object *job = client_get(client, path, err);

		if (job == NULL)
			return NULL;
		if (print_member(job, "verdict") != NULL)
			return STEAL_PTR(job);
		if (piece == 0) {
			err_set(err, ERR_TIMEOUT, "job %s is %s after %g s", id, print_string(job, "status"),
				timeout_s);
			return NULL;
		}
	}
}

static int
wait_one(const struct ctl *ctl, const char *id, bool sandbox, double timeout_s)
{
	AUTO_JSON struct json_object *item = NULL;
	bool show = ctl->output_given || ctl->quiet;
	struct err err;

	if (sandbox || !id_is_uuid(id)) {
		item = make_wait_ready(ctl->client, id, timeout_s, &err);
		if (item != NULL && show)
			print_one(ctl, item, sandbox_columns, "sandbox_id");
		return item != NULL ? CTL_OK : ctl_fail(ctl, &err);
	}
	item = wait_job(ctl->client, id, timeout_s, &err);
	if (item == NULL)
		return ctl_fail(ctl, &err);
	if (show)
		print_one(ctl, item, job_columns, "job_id");
	return job_exit_status(ctl, item);
}

int
cmd_wait(struct ctl *ctl, int argc, char **argv)
{
	AUTO_FREE char **ids = must_alloc(calloc((size_t)argc + 1, sizeof *ids));
	double timeout_s = 1e9;
	bool sandbox = false;
	struct args args;
	int status, count = 0;

	args_init(&args, ctl, argc, argv);
	for (int code; (code = args_next(&args)) != ARG_END;) {
		if (code == ARG_WORD)
			ids[count++] = args.value;
		else if (code == OPT_SANDBOX)
			sandbox = true;
		else if (code != OPT_TIMEOUT || !args_duration(&args, "--timeout", &timeout_s))
			return args.status;
	}
	if (count == 0)
		return args_fail(&args, "for which job or sandbox?");
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	for (int i = 0; i < count; i++) {
		int one = wait_one(ctl, ids[i], sandbox, timeout_s);

		if (status == CTL_OK)
			status = one;
	}
	return status;
}
