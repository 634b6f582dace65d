/* job_far.c - a job of another server, as Redis tells of it: how it stands, and the sandbox whose agent has it. */
/* SPDX-License-Identifier: MIT */
#include "domain/job/job_priv.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "base/err.h"
#include "base/json.h"
#include "cluster/job_board.h"
#include "conf/config.h"

#include <json-c/json.h>
#include <string.h>

uint32_t
job_far_slot(const struct service *service, const char *job_id)
{
	uint32_t hash = 2166136261;

	for (const char *p = job_id; *p != '\0'; p++)
		hash = (hash ^ (uint8_t)*p) * 16777619;
	return hash % (uint32_t)service->config->exec_queue_limit;
}

int
job_far_get(struct service *service, const char *job_id, job_board_got_f *done, void *arg, struct err *err)
{
	if (service->board == NULL)
		return err_set(err, ERR_NOT_FOUND, "this server shares no jobs with others");
	return job_board_get(service->board, job_id, done, arg, err);
}

void
job_far_forget(struct service *service, const void *arg)
{
	if (service->board != NULL)
		job_board_forget(service->board, arg);
}

bool
job_far_has_ended(const struct board_answer *answer)
{
	return strcmp(answer->state, "ended") == 0;
}

struct json_object *
job_far_json(const struct board_answer *answer, const char *tenant)
{
	struct json_object *job;
	struct err err;

	if (strcmp(answer->tenant, tenant) != 0)
		return NULL;
	job = json_parse(answer->json, answer->json_len, &err);
	if (job == NULL || !job_far_has_ended(answer) || strcmp(job_seal_tenant(job), tenant) == 0)
		return job;
	json_object_put(job);
	return NULL;
}

int
job_far_sandbox(struct service *service, const char *tenant, const char *sandbox_id, const char *uid,
	struct sandbox_record *ret_record, struct err *err)
{
	if (sandbox_lookup(service, tenant, sandbox_id, ret_record, NULL, err) != 0)
		return -1;
	if (strcmp(ret_record->uid, uid) != 0)
		return err_set(err, ERR_NOT_FOUND, "the sandbox of this job is gone");
	if (ret_record->status != SANDBOX_READY || ret_record->endpoint[0] == '\0')
		return err_set(err, ERR_NOT_READY, "the sandbox of this job has no agent now");
	return sandbox_check_host(ret_record, err);
}
