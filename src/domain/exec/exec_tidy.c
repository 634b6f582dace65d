/*
 * exec_tidy.c - an agent forgets what nobody will ask for any more.
 *
 * A process acknowledges a result some time after it has stored it; if it dies in between, nobody knows that this is
 * still to be done, and the agent's journal fills up with such jobs until it refuses new ones. A job has its record from
 * before it is sent until its result is stored: so one that the agent keeps as ended, and that has no record
 * afterwards, is done with.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/exec/exec_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/id.h"
#include "base/log.h"
#include "ipc/job_table.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DUE_JOBS = 64, /* of the 1024 that a journal holds */
	DUE_BYTES = 16 << 20 /* of 64 MiB */
};

struct exec_tidy {
	LIST_ENTRY(exec_tidy) link;
	struct service *service;
	struct agent_call *call;
	uint32_t slot;
	char uid[ID_UUID_SIZE];
};

static void
tidy_free(struct exec_tidy *tidy)
{
	if (tidy->call != NULL)
		agent_call_cancel(tidy->call);
	LIST_REMOVE(tidy, link);
	free(tidy);
}

void
exec_tidy_free_all(struct service *service)
{
	struct exec_tidy *tidy;

	while ((tidy = LIST_FIRST(&service->tidies)) != NULL)
		tidy_free(tidy);
}

static const char *
word_of(struct json_object *object, const char *name)
{
	const char *word = json_object_get_string(json_object_object_get(object, name));

	return word != NULL ? word : "";
}

static bool
is_done_with(struct service *service, struct json_object *job)
{
	struct job_record record;
	uint32_t slot;

	return strcmp(word_of(job, "state"), "ended") == 0 &&
		!job_table_find(service_jobs(service), word_of(job, "job_id"), &record, &slot);
}

static void
tidy_on_list(const struct agent_answer *answer, void *arg)
{
	struct exec_tidy *tidy = arg;
	struct service *service = tidy->service;
	struct json_object *jobs = NULL;
	struct sandbox_record record;
	struct agent_target target;
	size_t count = 0;

	tidy->call = NULL;
	if (answer->outcome == AGENT_JOB && json_object_object_get_ex(answer->body, "jobs", &jobs) &&
		json_object_is_type(jobs, json_type_array) &&
		sandbox_read_life(service, tidy->slot, tidy->uid, &record)) {
		target = service_target(&record);
		for (size_t i = 0; i < json_object_array_length(jobs); i++) {
			struct json_object *job = json_object_array_get_idx(jobs, i);

			if (!is_done_with(service, job))
				continue;
			if (exec_board_settle(service, tidy->slot, tidy->uid, word_of(job, "job_id")))
				continue;
			agent_job_ack(service->agents, &target, word_of(job, "job_id"));
			count++;
		}
		if (count > 0)
			log_write(LOG_LEVEL_INFO, &(struct log_ctx){ .sandbox_id = record.id },
				"acknowledged %zu results in place of processes that are gone", count);
	}
	tidy_free(tidy);
}

void
exec_tidy(struct service *service, uint32_t sandbox_slot, const char *sandbox_uid)
{
	struct sandbox_record record;
	struct agent_target target;
	struct exec_tidy *tidy;
	struct err err;

	LIST_FOREACH(tidy, &service->tidies, link)
	if (strcmp(tidy->uid, sandbox_uid) == 0)
		return;
	if (!sandbox_read_life(service, sandbox_slot, sandbox_uid, &record))
		return;
	tidy = alloc_zero(1, sizeof *tidy);
	tidy->service = service;
	tidy->slot = sandbox_slot;
	snprintf(tidy->uid, sizeof tidy->uid, "%s", sandbox_uid);
	LIST_INSERT_HEAD(&service->tidies, tidy, link);
	target = service_target(&record);
	if (agent_job_list(service->agents, &target, tidy_on_list, tidy, &tidy->call, &err) != 0)
		tidy_free(tidy);
}

void
exec_tidy_if_due(
	struct service *service, uint32_t sandbox_slot, const char *sandbox_uid, struct json_object *health)
{
	struct json_object *journal = json_object_object_get(health, "journal");
	int64_t jobs = json_object_get_int64(json_object_object_get(journal, "jobs"));
	int64_t bytes = json_object_get_int64(json_object_object_get(journal, "bytes"));

	if (jobs - json_object_get_int64(json_object_object_get(health, "running")) >= DUE_JOBS ||
		bytes >= DUE_BYTES)
		exec_tidy(service, sandbox_slot, sandbox_uid);
}
