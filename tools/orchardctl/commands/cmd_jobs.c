/* cmd_jobs.c - jobs: what a sandbox has run and is running. */
/* SPDX-License-Identifier: MIT */
#include "base/alloc.h"
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/job_view.h"

#include <json-c/json_object.h>

static int
jobs_print(const struct ctl *ctl, const char *sandbox, long long limit)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/jobs", sandbox);
	AUTO_FREE char *count = alloc_format("%lld", limit);
	AUTO_JSON struct json_object *page = NULL;
	struct json_object *jobs;
	struct err err;

	path_add(&path, "limit", count);
	page = client_get(ctl->client, path, &err);
	if (page == NULL)
		return ctl_fail(ctl, &err);
	jobs = print_array(page, "jobs");
	if (jobs != NULL)
		print_list(ctl, jobs, job_columns, "job_id", "it has run no commands");
	return CTL_OK;
}

int
cmd_jobs(struct ctl *ctl, int argc, char **argv)
{
	const char *sandbox = NULL;
	long long limit = 100;
	struct args args;
	int status;

	args_init(&args, ctl, argc, argv);
	for (;;) {
		int code = args_next(&args);

		if (code == ARG_END)
			break;
		if (code == ARG_STOP || (code == 'n' && !args_whole(&args, "--limit", 1, 100, &limit)))
			return args.status;
		if (code == ARG_WORD && sandbox != NULL)
			return args_fail(&args, "one sandbox, please; what is \"%s\"?", args.value);
		if (code == ARG_WORD)
			sandbox = args.value;
	}
	if (sandbox == NULL)
		return args_fail(&args, "of which sandbox? 'orchardctl ls' lists them");
	status = ctl_open(ctl);
	return status != CTL_OK ? status : jobs_print(ctl, sandbox, limit);
}
