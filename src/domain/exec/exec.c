/* exec.c - the commands this process drives, their places in the lock, and what happens around them. */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec.h"
#include "domain/exec/exec_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXEC_FIRST_PAUSE_MS = 100, EXEC_LAST_PAUSE_MS = 2000 };

static struct exec_list *
exec_bucket(struct service *service, uint64_t cookie)
{
	return &service->exec_buckets[cookie % SERVICE_EXEC_BUCKETS];
}

static void exec_on_sandbox(void *arg);
static void exec_on_job(void *arg);

struct exec *
exec_new(struct service *service)
{
	struct exec *exec = alloc_zero(1, sizeof *exec);

	exec->service = service;
	exec->cookie = ++service->exec_cookie;
	exec->pause_ms = EXEC_FIRST_PAUSE_MS;
	exec->timer = service_timer(service, exec_on_time, exec);
	exec->cancel_timer = service_timer(service, exec_on_cancel_time, exec);
	exec->sandbox_watch = (struct watch){ .on_change = exec_on_sandbox, .arg = exec };
	exec->job_watch = (struct watch){ .on_change = exec_on_job, .arg = exec };
	LIST_INSERT_HEAD(exec_bucket(service, exec->cookie), exec, link);
	service->execs++;
	return exec;
}

void
exec_free(struct exec *exec)
{
	exec_release(exec);
	service_forget(exec->service, exec);
	exec_others_forget(exec);
	watch_remove(&exec->sandbox_watch);
	watch_remove(&exec->job_watch);
	if (exec->call != NULL)
		agent_call_cancel(exec->call);
	if (exec->cancel_call != NULL)
		agent_call_cancel(exec->cancel_call);
	event_free(exec->timer);
	event_free(exec->cancel_timer);
	free(exec->deleted_error);
	json_object_put(exec->spec);
	json_object_put(exec->result);
	LIST_REMOVE(exec, link);
	exec->service->execs--;
	free(exec);
}

void
exec_free_all(struct service *service)
{
	struct exec *exec;

	for (int i = 0; i < SERVICE_EXEC_BUCKETS; i++)
		while ((exec = LIST_FIRST(&service->exec_buckets[i])) != NULL) {
			/* Whoever takes the job over takes the places over, too. */
			if (exec->record.detached && (exec->step != EXEC_STORING || exec->resumed))
				exec->has_ticket = exec->pass.queued = false;
			exec_free(exec);
		}
}

/* --- the lock --- */

/* FNV-1a: lanes are few, and two that collide merely take turns. */
uint64_t
exec_lane_number(const char *lane)
{
	uint64_t hash = UINT64_C(14695981039346656037);

	for (const char *p = lane; *p != '\0'; p++)
		hash = (hash ^ (uint8_t)*p) * UINT64_C(1099511628211);
	return hash;
}

int
exec_acquire(struct exec *exec, bool *ret_granted, struct err *err)
{
	struct service *service = exec->service;

	if (exec_lock_acquire(shm_exec_lock(service->shm), service->notify, &service->limits, service->self,
		    exec->record.sandbox_slot, exec_lane_number(exec->record.lane), exec->cookie, &exec->ticket,
		    ret_granted, err) != 0)
		return -1;
	exec->has_ticket = true;
	exec->record.fence = exec->ticket.number;
	exec->record.lock_node = exec->ticket.node;
	if (exec_lane_join(exec, err) == 0)
		return 0;
	exec_release(exec);
	return -1;
}

void
exec_give_back(struct service *service, struct exec_ticket ticket)
{
	exec_lock_release(shm_exec_lock(service->shm), service->notify, &service->limits, ticket);
}

void
exec_release(struct exec *exec)
{
	struct service *service = exec->service;

	exec->granted = exec->parked = false;
	if (exec->has_ticket)
		exec_give_back(service, exec->ticket);
	exec->has_ticket = false;
	lane_pass_leave(&exec->pass);
}

void
exec_keep(struct exec *exec)
{
	if (exec->record.detached && exec->has_ticket)
		exec_lock_keep(shm_exec_lock(exec->service->shm), exec->ticket);
}

void
exec_adopt(struct exec *exec)
{
	struct service *service = exec->service;

	exec->ticket = (struct exec_ticket){ .node = exec->record.lock_node, .number = exec->record.fence };
	exec->has_ticket = exec_lock_adopt(shm_exec_lock(service->shm), shm_scoreboard(service->shm), service->self,
		exec->ticket, exec->cookie, &exec->granted);
}

void
exec_granted(struct service *service, const struct exec_grant *grant)
{
	struct exec *exec;

	LIST_FOREACH(exec, exec_bucket(service, grant->cookie), link)
	{
		if (exec->cookie != grant->cookie || !exec->has_ticket ||
			exec->ticket.number != grant->ticket.number)
			continue;
		exec->granted = true;
		if (exec->step == EXEC_QUEUED)
			exec_start(exec);
		return;
	}
	/* Nobody here wants it any more: it must not stay with us. */
	exec_give_back(service, grant->ticket);
}

void
exec_queue(struct exec *exec)
{
	struct err err;

	exec_release(exec);
	exec->record.state = JOB_QUEUED;
	exec->record.started_at = 0;
	exec->record.started_ms = 0;
	exec->step = EXEC_QUEUED;
	if (exec_acquire(exec, &exec->granted, &err) != 0) {
		exec_finish_words(exec, "never_started", err.msg);
		return;
	}
	if (!exec_write_record(exec) || exec_give_up(exec))
		return;
	exec_keep(exec);
	exec_lock_name(shm_exec_lock(exec->service->shm), exec->ticket, exec->job_slot);
	if (exec->granted)
		exec_start(exec);
}

/* --- its record --- */

static int
change_record(struct job_record *record, void *arg, struct err *err)
{
	struct job_record *mine = arg;

	if (record->owner.slot != mine->owner.slot || record->owner.generation != mine->owner.generation)
		return err_set(err, ERR_CONFLICT, "another process has taken this job over");
	mine->cancel = record->cancel;
	mine->claimed = record->claimed;
	mine->untold = record->untold;
	mine->left = record->left;
	mine->followed = record->followed;
	mine->keep_until = record->keep_until;
	mine->spec = record->spec;
	*record = *mine;
	return 0;
}

bool
exec_write_record(struct exec *exec)
{
	struct err err;

	if (job_table_change(service_jobs(exec->service), exec->job_slot, exec->record.id, change_record,
		    &exec->record, &err) == 0)
		return true;
	log_write(LOG_LEVEL_WARN,
		&(struct log_ctx){ .sandbox_id = exec->record.sandbox_id, .job_id = exec->record.id },
		"job left to others: %s", err.msg);
	exec_free(exec);
	return false;
}

/* --- what happens around it --- */

/*
 * job_leave() marks only a record that is QUEUED, under its lock, and the start of the command writes RUNNING under the
 * same lock, taking a mark over: so either the mark is seen here before anything is sent, or it was never made.
 */
bool
exec_give_up(struct exec *exec)
{
	if (!exec->record.left || exec->step == EXEC_STORING || exec->step == EXEC_SAVING || exec->sent_ms != 0)
		return false;
	exec_finish_words(
		exec, "never_started", "its client left while the command was still queued; it did not run");
	return true;
}

bool
exec_was_sent(const struct exec *exec)
{
	return exec->step == EXEC_ASKING || (exec->step == EXEC_SENDING && exec->call != NULL) ||
		exec->sent_ms != 0;
}

/* False: that ended it. */
static bool
exec_look_at_sandbox(struct exec *exec)
{
	struct sandbox_record sandbox;
	char words[SANDBOX_MESSAGE_SIZE + 64];
	bool there = sandbox_read_life(
		exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, &sandbox);

	if (!there || sandbox.status == SANDBOX_DELETING || sandbox.status == SANDBOX_DOUBTFUL) {
		sandbox_gone_words(there ? sandbox.reap_rule : "", words, sizeof words);
		exec_finish_deleted(exec, words);
		return false;
	}
	if (sandbox.status == SANDBOX_FAILED) {
		snprintf(words, sizeof words, "sandbox failed: %s", sandbox.message);
		exec_finish_words(exec, exec_was_sent(exec) ? "agent_lost" : "never_started", words);
		return false;
	}
	return true;
}

static int
change_told(struct job_record *record, void *arg, struct err *err)
{
	(void)arg;
	(void)err;
	record->untold = false;
	return 0;
}

static void
exec_tell_anew(struct exec *exec)
{
	struct err err;

	if (job_table_change(
		    service_jobs(exec->service), exec->job_slot, exec->record.id, change_told, NULL, &err) == 0 &&
		exec->step != EXEC_STORING && exec->step != EXEC_SAVING)
		exec_board_tell(exec);
}

static bool
exec_look_at_job(struct exec *exec)
{
	struct job_record record;

	if (!job_table_read(service_jobs(exec->service), exec->job_slot, &record) ||
		strcmp(record.id, exec->record.id) != 0)
		return true;
	if (record.claimed && exec_step_back(exec))
		return false;
	if (record.untold)
		exec_tell_anew(exec);
	exec->record.left = record.left;
	if (exec_give_up(exec))
		return false;
	exec->record.cancel = record.cancel;
	return !record.cancel || exec_cancel(exec);
}

static void
exec_on_sandbox(void *arg)
{
	struct exec *exec = arg;

	if (exec_look_at_sandbox(exec))
		lane_pass_hint(&exec->pass);
}

static void
exec_on_job(void *arg)
{
	exec_look_at_job(arg);
}

/* The command of this process that watches its record there. */
static struct exec *
exec_find(struct service *service, uint32_t slot, const char *job_id)
{
	struct watch *watch;

	LIST_FOREACH(watch, &service->watches.buckets[NOTIFY_JOB][slot % WATCH_BUCKETS], link)
	{
		struct exec *exec = watch->arg;

		if (watch->on_change == exec_on_job && strcmp(exec->record.id, job_id) == 0)
			return exec;
	}
	return NULL;
}

struct exec *
exec_of_job(struct service *service, const char *job_id)
{
	struct job_record record;
	uint32_t slot;

	if (!job_table_find(service_jobs(service), job_id, &record, &slot))
		return NULL;
	return exec_find(service, slot, job_id);
}

void
exec_detach(struct service *service, const char *job_id)
{
	struct exec *exec = exec_of_job(service, job_id);

	if (exec == NULL || exec->record.detached)
		return;
	exec->record.detached = true;
	exec_keep(exec);
	exec_board_tell(exec);
	/* Should another process have it by now, that one decides. */
	(void)!exec_write_record(exec);
}

bool
exec_watch(struct exec *exec)
{
	watch_add(&exec->service->watches, &exec->sandbox_watch, NOTIFY_SANDBOX, exec->record.sandbox_slot);
	watch_add(&exec->service->watches, &exec->job_watch, NOTIFY_JOB, exec->job_slot);
	return exec_look_at_sandbox(exec) && exec_look_at_job(exec);
}

void
exec_pause(struct exec *exec)
{
	service_timer_set(exec->timer, exec->pause_ms);
	exec->pause_ms = exec->pause_ms * 2 < EXEC_LAST_PAUSE_MS ? exec->pause_ms * 2 : EXEC_LAST_PAUSE_MS;
}

static struct exec *
exec_find_of(struct exec_list *bucket, const char *sandbox_uid)
{
	struct exec *exec;

	LIST_FOREACH(exec, bucket, link)
	if (exec->step != EXEC_STORING && exec->step != EXEC_DRAINING && exec->step != EXEC_SAVING &&
		strcmp(exec->record.sandbox_uid, sandbox_uid) == 0)
		return exec;
	return NULL;
}

void
exec_end_all(struct service *service, const char *sandbox_uid, const char *verdict, const char *error)
{
	struct exec *exec;
	bool lost = strcmp(verdict, "agent_lost") == 0;

	/* Ending one may start or end others: look from the front each time. */
	for (int i = 0; i < SERVICE_EXEC_BUCKETS; i++)
		while ((exec = exec_find_of(&service->exec_buckets[i], sandbox_uid)) != NULL)
			if (strcmp(verdict, "sandbox_deleted") == 0)
				exec_finish_deleted(exec, error);
			else
				exec_finish_words(
					exec, lost && !exec_was_sent(exec) ? "never_started" : verdict, error);
}
