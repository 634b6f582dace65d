/*
 * cmd_run.c - run: a sandbox for one command.
 *
 * It is removed on every way out. Its name is made up here, so that also one whose making was interrupted can be
 * removed. If this process is killed, the sandbox's idle timeout removes it.
 */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/exec_call.h"
#include "orchardctl/commands/make.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/spec.h"
#include "orchardctl/output/print.h"

#include <json-c/json_object.h>

enum { IDLE_SECONDS = 300, READY_SECONDS = 86400, REMOVE_SECONDS = 10 };

struct run {
	struct ctl *ctl;
	struct json_object *body; /* owned: of POST /sandboxes */
	struct exec_call call;
	const char *image;
	bool keep;
};

static int
read_line(struct args *args, struct run *run)
{
	while (run->call.count == 0) {
		int code = args_next(args), taken;

		if (code == ARG_END || code == ARG_STOP)
			return code;
		if (code == OPT_KEEP) {
			run->keep = true;
			continue;
		}
		if (code == ARG_WORD) {
			if (run->image == NULL)
				run->image = args->value;
			else
				exec_call_take_words(&run->call, args);
			continue;
		}
		taken = exec_call_take(&run->call, args, code);
		if (taken == 0)
			taken = spec_take_sandbox(args, code, run->body);
		if (taken < 0)
			return ARG_STOP;
	}
	return ARG_END;
}

static void
complete_body(struct run *run)
{
	char id[24];

	id_sandbox(id);
	if (print_member(run->body, "sandbox_id") == NULL)
		spec_set_string(run->body, "sandbox_id", id);
	spec_set_string(run->body, "image", run->image);
	if (!run->keep && print_member(run->body, "idle_timeout_seconds") == NULL)
		json_object_object_add(
			run->body, "idle_timeout_seconds", must_alloc(json_object_new_int(IDLE_SECONDS)));
}

/* The exit status. *ret_made: there may be a sandbox now. */
static int
run_inside(struct run *run, const char *id, bool *ret_made)
{
	AUTO_JSON struct json_object *made = NULL, *ready = NULL;
	struct ctl *ctl = run->ctl;
	struct err err = { 0 };
	int status;

	made = make_sandbox(ctl->client, run->body, &err);
	/* What was refused is not there, or is another's. */
	*ret_made = made != NULL || err.code == ERR_STALE || err.code == ERR_UNAVAILABLE;
	if (made != NULL)
		ready = make_wait_ready(ctl->client, id, READY_SECONDS, &err);
	if (ready != NULL && ctl->signals->count == 0)
		return exec_call_run(&run->call, ctl, id);
	status = ctl_fail(ctl, &err);
	return status > CTL_SIGNAL ? status : CTL_NOT_RUN;
}

/*
 * Signals don't end this: it is short, and nobody else will do it. A server that has not answered before is asked
 * once, and nothing more is said of it.
 */
static void
remove_it(const struct run *run, const char *id, bool surely_made)
{
	AUTO_FREE char *path = path_format("/sandboxes/%s", id);
	struct request request = {
		.method = "DELETE", .path = path, .silence_s = REMOVE_SECONDS, .no_retry = !surely_made
	};
	struct err err;

	client_watch_signals(run->ctl->client, NULL);
	for (int tries = surely_made ? 1 : 3; tries > 0; tries--) {
		if (client_call(run->ctl->client, &request, NULL, &err) == 0)
			return;
		if (err.code != ERR_NOT_FOUND)
			break;
		/* A request to make it, which was broken off, may just be on its way. */
		if (tries > 1)
			client_pause(run->ctl->client, 200);
	}
	if (err.code != ERR_NOT_FOUND && (surely_made || err.code != ERR_UNAVAILABLE))
		ctl_error("sandbox %s is not removed: %s\n'orchardctl rm %s' does it", id, err.msg, id);
}

/* Making it again would answer the one that is there, and at the end remove it. */
static bool
is_taken(const struct run *run)
{
	const char *id = print_string(run->body, "sandbox_id");
	AUTO_FREE char *path = path_format("/sandboxes/%s", id);
	AUTO_JSON struct json_object *box = NULL;
	struct err err;

	if (id[0] == '\0')
		return false;
	box = client_get(run->ctl->client, path, &err);
	if (box != NULL)
		ctl_error("there is a sandbox \"%s\" already\n'orchardctl exec %s' runs commands in it", id, id);
	return box != NULL;
}

static int
run_it(struct run *run)
{
	struct signals signals;
	const char *id;
	bool made = false;
	int status;

	signals_catch(&signals);
	run->ctl->signals = &signals;
	client_watch_signals(run->ctl->client, &signals);
	if (is_taken(run))
		return CTL_NOT_RUN;
	complete_body(run);
	id = print_string(run->body, "sandbox_id");
	status = run_inside(run, id, &made);
	if (made && !run->keep)
		remove_it(run, id, status != CTL_NOT_RUN && status < CTL_SIGNAL);
	else if (made)
		ctl_note(run->ctl, "sandbox %s stays; 'orchardctl rm %s' removes it", id, id);
	return status;
}

int
cmd_run(struct ctl *ctl, int argc, char **argv)
{
	struct run run = { .ctl = ctl, .body = must_alloc(json_object_new_object()) };
	struct args args;
	int status;

	args_init(&args, ctl, argc, argv);
	exec_call_init(&run.call);
	if (read_line(&args, &run) == ARG_STOP)
		status = args.status;
	else if (run.image == NULL)
		status = args_fail(&args, "which image? \"default\" is the server's own");
	else if (!exec_call_check(&run.call, &args))
		status = args.status;
	else if (run.call.detach && !run.keep)
		status = args_fail(&args, "--detach needs --keep: else the sandbox goes at once");
	else
		status = ctl_open(ctl);
	if (status == CTL_OK && ctl->client != NULL)
		status = run_it(&run);
	exec_call_fini(&run.call);
	json_object_put(run.body);
	return status;
}
