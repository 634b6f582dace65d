/* cmd_shell.c - shell: a shell, or another program, of a sandbox at this terminal. */
/* SPDX-License-Identifier: MIT */
#include "base/id.h"
#include "base/json.h"
#include "orchardctl/args.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/commands/spec.h"
#include "orchardctl/terminal/terminal.h"

#include <json-c/json_object.h>

struct shell {
	struct terminal_spec spec;
	struct json_object *body; /* owned; what is asked for, as of POST .../exec */
	char **words; /* borrowed: the command */
	int count;
};

static bool
take_session(struct args *args, struct shell *shell)
{
	shell->spec.session = args->value;
	if (!id_is_uuid(args->value))
		args_fail(args, "\"%s\" is no session; one is told when it is left by ~d", args->value);
	return id_is_uuid(args->value);
}

static bool
take_word(struct args *args, struct shell *shell)
{
	if (shell->spec.sandbox == NULL) {
		shell->spec.sandbox = args->value;
		return true;
	}
	/* This and all that follows is the command, its options too. */
	shell->words = args->argv + args->at - 1;
	shell->count = args->argc - args->at + 1;
	args->at = args->argc;
	return true;
}

static bool
take(struct args *args, int code, struct shell *shell)
{
	switch (code) {
	case OPT_ATTACH:
		return take_session(args, shell);
	case OPT_RECONNECT:
		return args_duration(args, "--reconnect", &shell->spec.reconnect_seconds);
	case ARG_WORD:
		return take_word(args, shell);
	case ARG_STOP:
		return false;
	default:
		return spec_take_exec(args, code, shell->body) > 0;
	}
}

static bool
check(struct args *args, const struct shell *shell)
{
	if (shell->spec.sandbox == NULL)
		args_fail(args, "in which sandbox? 'orchardctl ls' lists them");
	else if (shell->spec.session != NULL && shell->count > 0)
		args_fail(args, "a session that is attached to has its program already");
	else
		return true;
	return false;
}

int
cmd_shell(struct ctl *ctl, int argc, char **argv)
{
	AUTO_JSON struct json_object *body = must_alloc(json_object_new_object());
	struct shell shell = { .body = body, .spec.reconnect_seconds = TERMINAL_RECONNECT_SECONDS };
	struct args args;
	int code, status;

	args_init(&args, ctl, argc, argv);
	while ((code = args_next(&args)) != ARG_END)
		if (!take(&args, code, &shell))
			return args.status;
	if (!check(&args, &shell))
		return args.status;
	if (shell.count > 0)
		spec_set_command(body, shell.words, shell.count, false);
	terminal_spec_read(&shell.spec, body);
	status = ctl_open(ctl);
	return status == CTL_OK ? terminal_run(ctl, &shell.spec) : status;
}
