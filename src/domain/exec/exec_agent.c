/*
 * exec_agent.c - one command and its agent, whatever the connection does.
 *
 *   sending   -> ended | busy | stale | not sent (again, a while) | lost (asking)
 *   busy wait -> the other job of the lane has ended: sending
 *   asking    -> ended | still running (asking) | never heard of it (sending, same id)
 *
 * The agent knows every job id it started, so sending the same id again cannot
 * run it twice; only what it may have forgotten (after RESEND_SAFE_MS), and what
 * went to an agent before it, is not sent again.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/job_store.h"
#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

enum {
	WAIT_MS = 30000, /* one long poll of the agent */
	UNREACHABLE_MS = 10000, /* of a command that was never sent */
	AGENT_FULL_MS = 60000, /* its journal holds more than it may, until we acknowledge */
	OUTCOME_LOST_MS = 60000, /* of one that may have run, past its own timeout */
	RESEND_SAFE_MS = 30 * 60 * 1000, /* the agent keeps an ended job at least an hour */
	STALE_TRIES = 5,
	GARBLED_TRIES = 3
};

static void exec_on_started(const struct agent_answer *answer, void *arg);

bool
exec_find_agent(struct exec *exec, struct sandbox_record *sandbox, struct agent_target *ret_target)
{
	if (!sandbox_read_life(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, sandbox)) {
		exec_finish_words(exec, "sandbox_deleted", "sandbox deleted");
		return false;
	}
	*ret_target = service_target(sandbox);
	return true;
}

static void
exec_reached(struct exec *exec)
{
	struct sandbox_record sandbox;

	if (exec->unreachable_ms == 0)
		return;
	exec->unreachable_ms = 0;
	exec->pause_ms = 100;
	if (sandbox_read_life(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, &sandbox))
		sandbox_reached(exec->service, exec->record.sandbox_slot, &sandbox);
}

/* Since how long nobody answers there. */
static int64_t
exec_unreached(struct exec *exec)
{
	struct sandbox_record sandbox;
	int64_t now = clock_boot_ms();

	if (exec->unreachable_ms == 0) {
		exec->unreachable_ms = now;
		service_count(exec->service, METRIC_AGENT_ERRORS, 1);
		if (sandbox_read_life(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid, &sandbox))
			sandbox_unreachable(exec->service, exec->record.sandbox_slot, &sandbox);
	}
	return now - exec->unreachable_ms;
}

bool
exec_agent_ended(struct json_object *agent_job)
{
	struct json_object *state;

	return json_object_object_get_ex(agent_job, "state", &state) &&
		strcmp(json_object_get_string(state), "ended") == 0;
}

/* --- sending --- */

void
exec_start(struct exec *exec)
{
	struct sandbox_record sandbox;
	struct agent_target target;
	struct err err;

	if (!exec_find_agent(exec, &sandbox, &target))
		return;
	if (!exec_lane_enter(exec))
		return;
	exec->step = EXEC_SENDING;
	exec->record.state = JOB_RUNNING;
	exec->record.started_at = clock_wall();
	exec->record.started_ms = clock_boot_ms();
	exec->record.attempt++;
	exec->record.blocked_by[0] = '\0';
	if (!exec_write_record(exec) || exec_give_up(exec))
		return;
	exec_board_tell(exec);
	if (exec->record.followed)
		notify_post(exec->service->notify, NOTIFY_JOB, exec->job_slot);
	if (exec->record.cancel) {
		exec_finish_words(exec, "canceled", "canceled before it started");
		return;
	}
	if (!exec->counted)
		service_count(exec->service, METRIC_EXECS_STARTED, 1);
	exec->counted = true;
	if (agent_exec_start(exec->service->agents, &target,
		    &(struct agent_exec){
			    .job_id = exec->record.id,
			    .fence = exec_lane_fence(exec),
			    .lane = exec->record.lane,
			    .spec = json_object_object_get(exec->spec, "request"),
			    .timeout_ms = exec->record.timeout_ms,
			    .kill_grace_ms = (int64_t)(exec->service->config->kill_grace_seconds * 1000),
		    },
		    exec_on_started, exec, &exec->call, &err) != 0) {
		exec_finish_words(exec, "never_started", err.msg);
	}
}

static void
exec_on_not_sent(struct exec *exec, const struct err *why)
{
	char words[sizeof why->msg + 64];

	if (exec_unreached(exec) < UNREACHABLE_MS) {
		exec_pause(exec);
		return;
	}
	snprintf(words, sizeof words, "agent unreachable: %s", why->msg);
	exec_finish_words(exec, "never_started", words);
}

/* Its fence was overtaken (the counter was lost): nothing was started, so a newer one does. */
static void
exec_on_stale(struct exec *exec, uint64_t newest)
{
	bool shared = exec_lane_overtaken(exec, newest);

	/* Another server's command went in between, as it may: that lane moves. */
	if (shared && newest > exec->stale_fence)
		exec->stale_count = 0;
	exec->stale_fence = newest;
	/* Whatever becomes of this one: the next command of the lane is to be above it. */
	if (!shared)
		exec_lock_raise(shm_exec_lock(exec->service->shm), newest);
	if (++exec->stale_count > STALE_TRIES)
		exec_finish_words(exec, "never_started", "the agent refused every fence as too old");
	else if (shared)
		exec_start(exec);
	else
		exec_queue(exec);
}

static void
exec_on_busy_end(const struct agent_answer *answer, void *arg)
{
	struct exec *exec = arg;

	exec->call = NULL;
	if (answer->outcome == AGENT_JOB || answer->outcome == AGENT_UNKNOWN_JOB ||
		answer->outcome == AGENT_FORGOTTEN) {
		exec_reached(exec);
		exec_start(exec);
	} else {
		exec_on_not_sent(exec, answer->err);
	}
}

/* A command that nobody of ours holds the lock for still runs in the lane: after it. */
static void
exec_on_busy(struct exec *exec, const char *busy_job)
{
	struct sandbox_record sandbox;
	struct agent_target target;
	struct err err;

	exec->step = EXEC_BUSY_WAIT;
	exec->record.state = JOB_QUEUED;
	exec->record.started_at = 0;
	exec->record.started_ms = 0;
	snprintf(exec->record.blocked_by, sizeof exec->record.blocked_by, "%s", busy_job);
	if (!exec_write_record(exec) || exec_give_up(exec))
		return;
	if (exec->record.cancel) {
		exec_finish_words(exec, "canceled", "canceled before it started");
		return;
	}
	if (!exec_find_agent(exec, &sandbox, &target))
		return;
	if (agent_job_get(exec->service->agents, &target, busy_job, WAIT_MS, exec_on_busy_end, exec, &exec->call,
		    &err) != 0)
		exec_pause(exec);
}

/* True: it will be tried again. A full journal is emptied; anything else will not get better. */
static bool
exec_on_refused(struct exec *exec, const struct err *why)
{
	int64_t now = clock_boot_ms();

	if (why->code != ERR_BUSY)
		return false;
	if (exec->refused_ms == 0)
		exec->refused_ms = now;
	if (now - exec->refused_ms >= AGENT_FULL_MS)
		return false;
	exec_tidy(exec->service, exec->record.sandbox_slot, exec->record.sandbox_uid);
	exec_pause(exec);
	return true;
}

bool
exec_store_failed(struct exec *exec, const struct err *why)
{
	if (why == NULL || why->code == ERR_NOT_FOUND)
		return false;
	if (exec->sent_ms == 0)
		exec->sent_ms = clock_boot_ms();
	exec->step = EXEC_ASKING;
	exec_pause(exec);
	return true;
}

/* It ran, and somebody acknowledged its result: that is in the store, unless its time is over. */
static void
exec_on_stored_or_lost(struct json_object *value, const struct err *why, void *arg)
{
	struct exec *exec = arg;

	exec->ran = true;
	if (value != NULL)
		exec_finish_stored(exec);
	else if (!exec_store_failed(exec, why) && !exec_others_ask(exec))
		exec_unknown(exec);
}

static void
exec_on_started(const struct agent_answer *answer, void *arg)
{
	struct exec *exec = arg;

	exec->call = NULL;
	if (answer->outcome != AGENT_NOT_SENT && answer->outcome != AGENT_LOST)
		exec_reached(exec);
	switch (answer->outcome) {
	case AGENT_JOB:
		exec->sent_ms = clock_boot_ms();
		if (exec_agent_ended(answer->body))
			exec_finish_agent(exec, answer->body);
		else
			exec_ask(exec);
		return;
	case AGENT_BUSY:
		exec_on_busy(exec, answer->busy_job);
		return;
	case AGENT_STALE:
		exec_on_stale(exec, answer->newest_fence);
		return;
	case AGENT_LOST:
		exec->sent_ms = clock_boot_ms();
		exec->step = EXEC_ASKING;
		exec_unreached(exec);
		exec_pause(exec);
		return;
	case AGENT_NOT_SENT:
		exec_on_not_sent(exec, answer->err);
		return;
	case AGENT_REFUSED:
		if (exec_on_refused(exec, answer->err))
			return;
		break;
	case AGENT_FORGOTTEN:
		job_store_get_result(exec->service->store, exec->record.id, exec_on_stored_or_lost, exec);
		return;
	case AGENT_UNKNOWN_JOB:
	case AGENT_STDIN_CLOSED:
	case AGENT_DENIED:
		break;
	}
	exec_finish_words(exec, "never_started", answer->err != NULL ? answer->err->msg : "the agent refused it");
}

/* --- asking --- */

/* The process that died had ended it before the agent could get it; only that end's own words are lost. */
static bool
exec_ended_unsent(const struct exec *exec)
{
	return exec->resumed && exec->record.state == JOB_SAVING && exec->record.started_ms == 0;
}

static void
exec_on_no_answer(struct exec *exec, const struct err *why)
{
	int64_t over = clock_boot_ms() - exec->sent_ms - exec->record.timeout_ms;
	char words[sizeof why->msg + 64];

	if (exec_ended_unsent(exec)) {
		exec_finish_unsent(exec);
		return;
	}
	if (exec_unreached(exec) < OUTCOME_LOST_MS || over < OUTCOME_LOST_MS) {
		exec_pause(exec);
		return;
	}
	snprintf(words, sizeof words, "its outcome is not known, the agent does not answer: %s", why->msg);
	exec_finish_words(exec, "agent_lost", words);
}

/* It answers, but nothing that can be read, and asking again will hardly change that. */
static bool
exec_on_garbled(struct exec *exec, const struct agent_answer *answer)
{
	enum err_code code = answer->outcome == AGENT_LOST ? answer->err->code : ERR_NONE;
	char words[sizeof answer->err->msg + 64];

	if ((code != ERR_INVALID && code != ERR_INTERNAL && code != ERR_TOO_LARGE) ||
		++exec->garbled < GARBLED_TRIES)
		return false;
	snprintf(words, sizeof words, "its outcome is not known, the agent tells nonsense: %s", answer->err->msg);
	exec->agent_ended = true;
	exec_finish_words(exec, "agent_lost", words);
	return true;
}

static void
exec_note_age(struct exec *exec, const struct agent_answer *answer)
{
	struct json_object *age;

	if (answer->outcome == AGENT_UNKNOWN_JOB && exec->record.started_ms != 0 &&
		json_object_object_get_ex(answer->body, "age_ms", &age))
		exec->orphaned = json_object_get_int64(age) < clock_boot_ms() - exec->record.started_ms;
}

static void
exec_on_barred(const struct agent_answer *answer, void *arg)
{
	struct exec *exec = arg;

	exec->call = NULL;
	exec_note_age(exec, answer);
	if (answer->outcome == AGENT_UNKNOWN_JOB && exec->orphaned)
		exec_unknown(exec);
	else if (answer->outcome == AGENT_UNKNOWN_JOB)
		exec_finish_unsent(exec);
	else if (answer->outcome == AGENT_NOT_SENT || answer->outcome == AGENT_LOST)
		exec_on_no_answer(exec, answer->err);
	else
		exec_ask(exec);
}

/* What the dead process sent may still be on its way: only what can't begin any more has never started. */
static void
exec_bar(struct exec *exec)
{
	struct sandbox_record sandbox;
	struct agent_target target;
	struct err err;

	if (!exec_find_agent(exec, &sandbox, &target))
		return;
	if (agent_job_bar(
		    exec->service->agents, &target, exec->record.id, exec_on_barred, exec, &exec->call, &err) != 0)
		exec_on_no_answer(exec, &err);
}

/* Nobody ended it elsewhere, and the agent has never heard of it, or not any more. */
void
exec_unknown(struct exec *exec)
{
	if (exec->ran)
		exec_finish_words(exec, "agent_lost", "it ran, but the agent has forgotten how it ended");
	else if (exec_ended_unsent(exec))
		exec_finish_unsent(exec);
	else if (exec->orphaned)
		exec_finish_words(exec, "agent_lost", "its agent is no more: its outcome is not known");
	else if (clock_boot_ms() - exec->sent_ms > RESEND_SAFE_MS)
		exec_finish_words(exec, "agent_lost", "the agent has forgotten it: its outcome is not known");
	else if (exec->resumed && !exec->record.detached)
		exec_bar(exec);
	else if (exec->granted)
		exec_start(exec);
	else
		exec_queue(exec);
}

static void
exec_on_stored_or_not(struct json_object *value, const struct err *why, void *arg)
{
	struct exec *exec = arg;

	exec->ran = false;
	if (value != NULL)
		exec_finish_stored(exec);
	else if (!exec_store_failed(exec, why) && !exec_others_ask(exec))
		exec_unknown(exec);
}

static void
exec_on_asked(const struct agent_answer *answer, void *arg)
{
	struct exec *exec = arg;

	exec->call = NULL;
	if (exec_on_garbled(exec, answer))
		return;
	if (answer->outcome == AGENT_NOT_SENT || answer->outcome == AGENT_LOST) {
		exec_on_no_answer(exec, answer->err);
		return;
	}
	exec_reached(exec);
	exec_note_age(exec, answer);
	if (answer->outcome == AGENT_JOB && exec_agent_ended(answer->body))
		exec_finish_agent(exec, answer->body);
	else if (answer->outcome == AGENT_JOB)
		exec_ask(exec);
	else if (answer->outcome == AGENT_FORGOTTEN)
		job_store_get_result(exec->service->store, exec->record.id, exec_on_stored_or_lost, exec);
	else if (answer->outcome == AGENT_UNKNOWN_JOB)
		job_store_get_result(exec->service->store, exec->record.id, exec_on_stored_or_not, exec);
	else
		exec_finish_words(exec, "agent_lost", answer->err != NULL ? answer->err->msg : "the agent refused");
}

void
exec_ask(struct exec *exec)
{
	struct sandbox_record sandbox;
	struct agent_target target;
	struct err err;

	exec->step = EXEC_ASKING;
	if (!exec_find_agent(exec, &sandbox, &target))
		return;
	if (agent_job_get(exec->service->agents, &target, exec->record.id, WAIT_MS, exec_on_asked, exec,
		    &exec->call, &err) != 0)
		exec_on_no_answer(exec, &err);
}

void
exec_on_time(evutil_socket_t fd, short what, void *arg)
{
	struct exec *exec = arg;

	(void)fd;
	(void)what;
	if (exec->step == EXEC_ASKING)
		exec_ask(exec);
	else
		exec_start(exec);
}
