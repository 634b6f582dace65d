/* cmd_exec.c - exec: a command in a sandbox that is there. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/exec_call.h"

static int
read_line(struct args *args, struct exec_call *call, const char **ret_sandbox)
{
	while (call->count == 0) {
		int code = args_next(args), taken;

		if (code == ARG_END || code == ARG_STOP)
			return code;
		if (code == ARG_WORD) {
			if (*ret_sandbox == NULL)
				*ret_sandbox = args->value;
			else
				exec_call_take_words(call, args);
			continue;
		}
		taken = exec_call_take(call, args, code);
		if (taken < 0)
			return ARG_STOP;
	}
	return ARG_END;
}

int
cmd_exec(struct ctl *ctl, int argc, char **argv)
{
	const char *sandbox = NULL;
	struct exec_call call;
	struct signals signals;
	struct args args;
	int status;

	args_init(&args, ctl, argc, argv);
	exec_call_init(&call);
	if (read_line(&args, &call, &sandbox) == ARG_STOP)
		status = args.status;
	else if (sandbox == NULL)
		status = args_fail(&args, "in which sandbox? 'orchardctl ls' lists them");
	else if (!exec_call_check(&call, &args))
		status = args.status;
	else
		status = ctl_open(ctl);
	if (status == CTL_OK && ctl->client != NULL) {
		signals_catch(&signals);
		ctl->signals = &signals;
		client_watch_signals(ctl->client, &signals);
		status = exec_call_run(&call, ctl, sandbox);
	}
	exec_call_fini(&call);
	return status;
}
