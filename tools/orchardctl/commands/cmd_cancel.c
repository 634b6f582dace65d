/* cmd_cancel.c - cancel: jobs that are to end. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/job_view.h"

#include <json-c/json_object.h>

static int
cancel_one(const struct ctl *ctl, const char *job_id, struct json_object *jobs)
{
	AUTO_FREE char *path = path_format("/jobs/%s/cancel", job_id);
	struct request request = { .method = "POST", .path = path };
	AUTO_ANSWER answer = { 0 };
	struct err err;

	if (client_call(ctl->client, &request, &answer, &err) < 0)
		return ctl_fail(ctl, &err);
	if (answer.json == NULL)
		return CTL_FAILED;
	if (print_member(answer.json, "verdict") == NULL)
		ctl_note(ctl, "job %s has not ended yet", job_id);
	json_object_array_add(jobs, STEAL_PTR(answer.json));
	return CTL_OK;
}

int
cmd_cancel(struct ctl *ctl, int argc, char **argv)
{
	AUTO_FREE char **ids = must_alloc(calloc((size_t)argc + 1, sizeof *ids));
	AUTO_JSON struct json_object *jobs = must_alloc(json_object_new_array());
	int status, count;
	struct args args;

	args_init(&args, ctl, argc, argv);
	count = args_words(&args, ids);
	if (count < 0)
		return args.status;
	if (count == 0)
		return args_fail(&args, "which job? 'orchardctl jobs SANDBOX' lists them");
	status = ctl_open(ctl);
	if (status != CTL_OK)
		return status;
	for (int i = 0; i < count; i++) {
		int one = cancel_one(ctl, ids[i], jobs);

		if (status == CTL_OK)
			status = one;
	}
	if (json_object_array_length(jobs) > 0)
		print_list(ctl, jobs, job_columns, "job_id", "");
	return status;
}
