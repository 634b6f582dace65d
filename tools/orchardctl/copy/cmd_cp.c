/* cmd_cp.c - cp: one end is in a sandbox, the other here. */
/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/copy/copy.h"
#include "orchardctl/copy/place.h"

#include <signal.h>

struct ends {
	struct place from, to;
};

static void
ends_fini(struct ends *ends)
{
	place_fini(&ends->from);
	place_fini(&ends->to);
}

/* Which of them is in a sandbox decides all. */
static bool
check_ends(struct args *args, const struct ends *ends)
{
	if (ends->from.sandbox != NULL && ends->to.sandbox != NULL)
		args_fail(args,
			"both are in sandboxes; copy by way of a pipe:\n"
			"  orchardctl cp %s:%s - | orchardctl cp - %s:%s",
			ends->from.sandbox, ends->from.path, ends->to.sandbox, ends->to.path);
	else if (ends->from.sandbox == NULL && ends->to.sandbox == NULL)
		args_fail(args, "neither is in a sandbox; write SANDBOX:PATH for the one that is");
	else if (ends->from.sandbox == NULL && ends->from.path[0] == '\0')
		args_fail(args, "the name of the file is empty");
	else
		return true;
	return false;
}

static int
copy_between(struct copy *copy, const struct ends *ends)
{
	struct ctl *ctl = copy->ctl;
	struct signals signals;
	struct err err;
	int status = ctl_open(ctl), rc;

	if (status != CTL_OK)
		return status;
	signals_catch(&signals);
	ctl->signals = &signals;
	client_watch_signals(ctl->client, &signals);
	copy->sandbox = ends->to.sandbox != NULL ? ends->to.sandbox : ends->from.sandbox;
	if (ends->to.sandbox != NULL)
		rc = upload_run(copy, &ends->from, &ends->to, &err);
	else
		rc = download_run(copy, &ends->from, &ends->to, &err);
	if (rc == 0)
		status = CTL_OK;
	else
		status = err.code == ERR_CLOSED ? CTL_SIGNAL + SIGPIPE : ctl_fail(ctl, &err);
	client_watch_signals(ctl->client, NULL);
	ctl->signals = NULL;
	return status;
}

int
cmd_cp(struct ctl *ctl, int argc, char **argv)
{
	__attribute__((cleanup(ends_fini))) struct ends ends = { .from.path = NULL };
	struct copy copy = { .ctl = ctl };
	const char *words[2];
	struct args args;
	int code, count = 0;

	args_init(&args, ctl, argc, argv);
	while ((code = args_next(&args)) != ARG_END) {
		if (code == 'u')
			copy.user = args.value;
		else if (code == OPT_ANY_LINKS)
			copy.any_links = true;
		else if (code == OPT_SKIP_UNREADABLE)
			copy.skip_unreadable = true;
		else if (code != ARG_WORD)
			return args.status;
		else if (count == 2)
			return args_fail(
				&args, "one source and one target; for several files copy their directory");
		else
			words[count++] = args.value;
	}
	if (count < 2)
		return args_fail(&args, "from where, and to where? one of them is SANDBOX:PATH");
	place_read(&ends.from, words[0]);
	place_read(&ends.to, words[1]);
	return check_ends(&args, &ends) ? copy_between(&copy, &ends) : args.status;
}
