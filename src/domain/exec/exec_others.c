/*
 * exec_others.c - a job of ours that another server may have taken over while this one was silent.
 *
 * Before this server says of a job that its outcome is not known, or sends it once more, it asks what the others know. A
 * job that was never told to them can't have been taken.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/job/job_priv.h"
#include "domain/service_priv.h"
#include "base/err.h"
#include "base/json.h"
#include "base/log.h"

#include <json-c/json.h>
#include <string.h>

bool
exec_step_back(struct exec *exec)
{
	struct service *service = exec->service;
	struct job_record record = exec->record;
	uint32_t slot = exec->job_slot;

	/* One that is over is written down as any other: it ends once all the same. */
	if (exec->step == EXEC_STORING || exec->step == EXEC_SAVING)
		return false;
	log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = record.sandbox_id, .job_id = record.id },
		"another server drives this job now");
	job_table_remove(service_jobs(service), slot, record.id);
	exec_free(exec);
	watch_post(&service->watches, NOTIFY_JOB, slot);
	return true;
}

static void
others_on_answer(const struct board_answer *answer, const struct err *why, void *arg)
{
	struct exec *exec = arg;
	struct json_object *job = answer != NULL ? job_far_json(answer, exec->record.tenant) : NULL;

	exec->asking_others = false;
	if (job != NULL && job_far_has_ended(answer)) {
		exec_finish_theirs(exec, job);
		return;
	}
	json_object_put(job);
	if (answer != NULL && strcmp(answer->home, exec->service->share->replica) != 0)
		(void)!exec_step_back(exec);
	else if (!exec_store_failed(exec, why))
		exec_unknown(exec);
}

bool
exec_others_ask(struct exec *exec)
{
	struct err err;

	if (exec->service->board == NULL || (!exec->record.detached && !exec->record.taken))
		return false;
	exec->asking_others = true;
	if (job_far_get(exec->service, exec->record.id, others_on_answer, exec, &err) == 0)
		return true;
	exec->asking_others = false;
	return exec_store_failed(exec, &err);
}

void
exec_others_forget(struct exec *exec)
{
	if (exec->asking_others)
		job_far_forget(exec->service, exec);
	exec->asking_others = false;
}
