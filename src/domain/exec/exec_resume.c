/*
 * exec_resume.c - the jobs of a process that died, ended truthfully.
 *
 * Whoever changes the owner first has it. What may have reached the agent is
 * asked for there, by its id; what never did is told so, or, when nobody waited
 * for its answer anyway, queued again.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/job_store.h"
#include "base/err.h"
#include "base/log.h"
#include "ipc/shm.h"

#include <json-c/json.h>
#include <string.h>

struct claim {
	struct proc_ref dead, self;
	struct job_record record;
};

static int
change_owner(struct job_record *record, void *arg, struct err *err)
{
	struct claim *claim = arg;

	if (record->owner.slot != claim->dead.slot || record->owner.generation != claim->dead.generation)
		return err_set(err, ERR_CONFLICT, "somebody else took it over");
	record->owner = claim->self;
	claim->record = *record;
	return 0;
}

/* Its host and the servers there are silent: nobody will ever be able to ask. True: that ended it. */
static bool
resume_on_lost_host(struct exec *exec)
{
	struct sandbox_record sandbox;

	if (!exec->record.taken ||
		!sandbox_read_life(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, &sandbox) ||
		!sandbox.elsewhere)
		return false;
	exec_finish_words(exec, "agent_lost",
		"its outcome is not known: its host is lost, no server there has said anything for too long");
	return true;
}

static void
resume_go_on(struct exec *exec)
{
	if (!exec_watch(exec) || resume_on_lost_host(exec))
		return;
	/* Perhaps its process died before it had told anybody. */
	exec_board_tell(exec);
	if (exec->record.state != JOB_QUEUED)
		exec_ask(exec);
	else if (exec->record.detached && !exec->has_ticket)
		exec_queue(exec);
	else if (exec->record.detached && exec->granted)
		exec_start(exec);
	else if (!exec->record.detached)
		exec_finish_unsent(exec);
}

static void
resume_on_spec(struct json_object *value, const struct err *why, void *arg)
{
	struct exec *exec = arg;

	if (value != NULL) {
		exec->spec = json_object_get(value);
	} else {
		/* It can still be asked for; only what it was is not known, so it can't be sent. */
		log_write(LOG_LEVEL_WARN,
			&(struct log_ctx){ .sandbox_id = exec->record.sandbox_id, .job_id = exec->record.id },
			"what the job was asked to do cannot be read: %s", why->msg);
		exec->spec = json_object_new_object();
		exec->record.detached = false;
	}
	exec->step = exec->record.state == JOB_QUEUED ? EXEC_QUEUED : EXEC_ASKING;
	resume_go_on(exec);
}

void
exec_resume(struct service *service, uint32_t job_slot)
{
	struct claim claim = { .self = service->self };
	struct exec *exec;
	struct err err;

	if (!job_table_read(service_jobs(service), job_slot, &claim.record))
		return;
	claim.dead = claim.record.owner;
	if (scoreboard_is_current(shm_scoreboard(service->shm), claim.dead) ||
		job_table_change(service_jobs(service), job_slot, claim.record.id, change_owner, &claim, &err) != 0)
		return;
	service_count(service, METRIC_EXECS_RECOVERED, 1);
	exec = exec_new(service);
	exec->resumed = true;
	exec->counted = claim.record.attempt > 0;
	exec->job_slot = job_slot;
	exec->record = claim.record;
	exec_adopt(exec);
	exec_lane_adopt(exec);
	if (exec->record.state != JOB_QUEUED)
		exec->sent_ms = exec->record.started_ms;
	job_store_get_spec(service->store, exec->record.id, &exec->record.spec, resume_on_spec, exec);
}
