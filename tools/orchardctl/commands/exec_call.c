/* exec_call.c - starts a job and stands for it, or prints it when -o asks for that. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/commands/exec_call.h"
#include "base/err.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/attach/attach.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/commands/job_view.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/spec.h"
#include "orchardctl/terminal/terminal.h"

#include <json-c/json_object.h>

void
exec_call_init(struct exec_call *call)
{
	*call = (struct exec_call){ .body = must_alloc(json_object_new_object()) };
}

void
exec_call_fini(struct exec_call *call)
{
	json_object_put(call->body);
}

int
exec_call_take(struct exec_call *call, struct args *args, int code)
{
	switch (code) {
	case 'c':
		call->by_shell = true;
		return 1;
	case 'i':
		call->input = true;
		return 1;
	case 'd':
		call->detach = true;
		return 1;
	case 't':
		call->terminal = true;
		return 1;
	default:
		return spec_take_exec(args, code, call->body);
	}
}

void
exec_call_take_words(struct exec_call *call, struct args *args)
{
	call->words = args->argv + args->at - 1;
	call->count = args->argc - args->at + 1;
}

bool
exec_call_check(const struct exec_call *call, struct args *args)
{
	if (call->count == 0 && (!call->terminal || call->by_shell))
		args_fail(args, "which command?");
	else if (call->terminal && call->detach)
		args_fail(args, "--tty and --detach exclude each other");
	else if (call->terminal &&
		(print_member(call->body, "timeout_seconds") != NULL || print_member(call->body, "lane") != NULL))
		args_fail(args, "a command at a terminal has no --timeout, and waits in no --lane");
	else
		return spec_check_words(args, call->words, call->count);
	return false;
}

enum { HOLD_SECONDS = 60 }; /* that a command with more output than is kept waits for a way back to it */

/* A signal that came before there was a job is still the reason. */
static int
not_run(const struct ctl *ctl, const struct err *err)
{
	int status = ctl_fail(ctl, err);

	return status > CTL_SIGNAL ? status : CTL_NOT_RUN;
}

static int
start_job(struct exec_call *call, struct ctl *ctl, const char *sandbox_id, struct json_object **ret_job,
	struct err *err)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s/exec", sandbox_id);
	struct request request = { .method = "POST", .path = path, .body = call->body, .once = true };
	AUTO_ANSWER answer = { 0 };

	spec_set_command(call->body, call->words, call->count, call->by_shell);
	json_object_object_add(call->body, "wait", json_object_new_boolean(false));
	if (call->input)
		json_object_object_add(call->body, "stdin_open", json_object_new_boolean(true));
	if (!call->detach)
		json_object_object_add(call->body, "hold_output_seconds", json_object_new_int(HOLD_SECONDS));
	if (client_call(ctl->client, &request, &answer, err) < 0)
		return -1;
	if (print_member(answer.json, "job_id") == NULL)
		return err_set(err, ERR_INTERNAL, "the server answered, but not as an Orchard server does");
	*ret_job = STEAL_PTR(answer.json);
	return 0;
}

/* The job with its output, for programs. */
static int
print_job(const struct ctl *ctl, const char *job_id)
{
	AUTO_FREE char *path = path_format("/jobs/%s", job_id);
	AUTO_JSON struct json_object *job = NULL;
	struct err err;

	job = client_get(ctl->client, path, &err);
	if (job == NULL)
		return ctl_fail(ctl, &err);
	print_one(ctl, job, job_columns, "job_id");
	return CTL_OK;
}

static int
run_at_terminal(struct exec_call *call, struct ctl *ctl, const char *sandbox_id)
{
	struct terminal_spec spec = { .sandbox = sandbox_id, .reconnect_seconds = TERMINAL_RECONNECT_SECONDS };

	if (call->count > 0)
		spec_set_command(call->body, call->words, call->count, call->by_shell);
	terminal_spec_read(&spec, call->body);
	return terminal_run(ctl, &spec);
}

int
exec_call_run(struct exec_call *call, struct ctl *ctl, const char *sandbox_id)
{
	AUTO_JSON struct json_object *job = NULL, *ended = NULL;
	struct attach attach = { .input = call->input, .silent = ctl->output_given };
	struct err err;
	int status;

	if (call->terminal)
		return run_at_terminal(call, ctl, sandbox_id);
	if (start_job(call, ctl, sandbox_id, &job, &err) < 0)
		return not_run(ctl, &err);
	attach.job_id = print_string(job, "job_id");
	if (call->detach) {
		if (ctl->output_given)
			return print_job(ctl, attach.job_id);
		puts(attach.job_id);
		return CTL_OK;
	}
	status = attach_run(ctl, &attach, &ended);
	if (ended != NULL && ctl->output_given && ctl->signals->count == 0 &&
		print_job(ctl, attach.job_id) != CTL_OK)
		return CTL_NOT_RUN;
	return status;
}
