/*
 * exec_cancel.c - a command that is to end.
 *
 * What has not been sent ends at once; else its agent is asked to end it, again and again until it says how it did.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "base/err.h"

#include <event2/event.h>

enum { CANCEL_PAUSE_MS = 200 };

static void
exec_on_canceled(const struct agent_answer *answer, void *arg)
{
	struct exec *exec = arg;

	exec->cancel_call = NULL;
	if (answer->outcome == AGENT_JOB && exec_agent_ended(answer->body))
		exec_finish_agent(exec, answer->body);
	else
		service_timer_set(exec->cancel_timer, CANCEL_PAUSE_MS);
}

bool
exec_cancel(struct exec *exec)
{
	struct sandbox_record sandbox;
	struct agent_target target;
	struct err err;

	if (exec->step == EXEC_STORING || exec->step == EXEC_SAVING || exec->cancel_call != NULL)
		return true;
	if (exec->step == EXEC_QUEUED || exec->step == EXEC_BUSY_WAIT ||
		(exec->step == EXEC_SENDING && exec->call == NULL && exec->sent_ms == 0)) {
		exec_finish_words(exec, "canceled", "canceled before it started");
		return false;
	}
	if (!exec_find_agent(exec, &sandbox, &target))
		return false;
	if (agent_job_cancel(exec->service->agents, &target, exec->record.id, exec_on_canceled, exec,
		    &exec->cancel_call, &err) != 0)
		service_timer_set(exec->cancel_timer, CANCEL_PAUSE_MS);
	return true;
}

void
exec_on_cancel_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	exec_cancel(arg);
}
