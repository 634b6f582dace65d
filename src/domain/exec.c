/* exec.c - the commands this process drives, their places in the lock, and what happens around them. */
/* SPDX-License-Identifier: MIT */
#include "domain/exec.h"
#include "domain/exec_priv.h"
#include "domain/sandbox_priv.h"
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
	watch_remove(&exec->sandbox_watch);
	watch_remove(&exec->job_watch);
	if (exec->call != NULL)
		agent_call_cancel(exec->call);
	if (exec->cancel_call != NULL)
		agent_call_cancel(exec->cancel_call);
	event_free(exec->timer);
	event_free(exec->cancel_timer);
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
		while ((exec = LIST_FIRST(&service->exec_buckets[i])) != NULL)
			exec_free(exec);
}

/* --- the lock --- */

/* FNV-1a: lanes are few, and two that collide merely take turns. */
static uint64_t
lane_number(const char *lane)
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
		    exec->record.sandbox_slot, lane_number(exec->record.lane), exec->cookie, &exec->ticket,
		    ret_granted, err) != 0)
		return -1;
	exec->has_ticket = true;
	exec->record.fence = exec->ticket.number;
	exec->record.lock_node = exec->ticket.node;
	return 0;
}

void
exec_release(struct exec *exec)
{
	struct service *service = exec->service;

	exec->granted = false;
	if (!exec->has_ticket)
		return;
	exec->has_ticket = false;
	exec_lock_release(shm_exec_lock(service->shm), service->notify, &service->limits, exec->ticket);
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
	exec_lock_release(shm_exec_lock(service->shm), service->notify, &service->limits, grant->ticket);
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
	if (exec_acquire(exec, &exec->granted, &err) != 0)
		exec_finish_words(exec, "never_started", err.msg);
	else if (exec_write_record(exec) && exec->granted)
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

static bool
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
		exec_finish_words(exec, "sandbox_deleted", words);
		return false;
	}
	if (sandbox.status == SANDBOX_FAILED) {
		snprintf(words, sizeof words, "sandbox failed: %s", sandbox.message);
		exec_finish_words(exec, exec_was_sent(exec) ? "agent_lost" : "never_started", words);
		return false;
	}
	return true;
}

static bool
exec_look_at_job(struct exec *exec)
{
	struct job_record record;

	if (!job_table_read(service_jobs(exec->service), exec->job_slot, &record) ||
		strcmp(record.id, exec->record.id) != 0 || !record.cancel)
		return true;
	exec->record.cancel = true;
	return exec_cancel(exec);
}

static void
exec_on_sandbox(void *arg)
{
	exec_look_at_sandbox(arg);
}

static void
exec_on_job(void *arg)
{
	exec_look_at_job(arg);
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
	if (exec->step != EXEC_STORING && exec->step != EXEC_SAVING &&
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
			exec_finish_words(exec, lost && !exec_was_sent(exec) ? "never_started" : verdict, error);
}
