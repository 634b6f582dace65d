/* cmd_doctor.c - doctor: from the configuration here to a sandbox there, what works and what mends the rest. */
/* SPDX-License-Identifier: MIT */
#include "base/cleanup.h"
#include "orchardctl/args.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/here.h"
#include "orchardctl/commands/commands.h"
#include "orchardctl/commands/options.h"
#include "orchardctl/doctor/finding.h"

struct wishes {
	bool host, no_host, try;
	const char *conf_path;
};

/* Whoever may read the server's keys needs none of their own; no key leaves this host by that. */
static void
take_host_key(struct ctl *ctl, const char *conf_path)
{
	ctl->server.key = doctor_host_key(conf_path);
	client_close(ctl->client);
	ctl->client = client_create(&ctl->server, ctl->retry_seconds, ctl->quiet);
}

static int
examine(struct ctl *ctl, const struct wishes *wishes)
{
	struct findings findings;
	int status = ctl_open(ctl);
	bool reached;

	if (status != CTL_OK)
		return status;
	if (wishes->host && ctl->server.key == NULL && url_is_here(ctl->server.url))
		take_host_key(ctl, wishes->conf_path);
	findings_init(&findings, ctl);
	doctor_check_client(&findings);
	reached = doctor_check_server(&findings);
	doctor_check_metrics(&findings);
	/* What is here may be the end of a tunnel into a cluster; the host behind it is not asked for. */
	if (wishes->host || (!wishes->no_host && url_is_here(ctl->server.url) && !findings_on_cluster(&findings)))
		doctor_check_host(&findings, wishes->conf_path);
	if (reached && wishes->try)
		doctor_try_sandbox(&findings);
	findings_end(&findings);
	return findings.failures > 0 ? CTL_FAILED : CTL_OK;
}

int
cmd_doctor(struct ctl *ctl, int argc, char **argv)
{
	struct wishes wishes = { 0 };
	struct args args;
	int code;

	args_init(&args, ctl, argc, argv);
	while ((code = args_next(&args)) != ARG_END) {
		if (code == OPT_HOST) {
			wishes.host = true;
		} else if (code == OPT_NO_HOST) {
			wishes.no_host = true;
		} else if (code == OPT_TRY) {
			wishes.try = true;
		} else if (code == 'c') {
			wishes.conf_path = args.value;
			wishes.host = true;
		} else {
			if (code == ARG_WORD)
				args_fail(&args, "takes no words, and \"%s\" is one", args.value);
			return args.status;
		}
	}
	if (wishes.host && wishes.no_host)
		return args_fail(&args, "--no-host does not go with --host and --conf");
	return examine(ctl, &wishes);
}
