/* job_priv.h - a job in the shapes of the REST API, and handing ends to waiters of this process. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_PRIV_H
#define ORCHARD_DOMAIN_JOB_PRIV_H

#include "domain/job.h"
#include "ipc/job_table.h"

#include <stdbool.h>

struct service;

enum { JOB_CANCEL_WAIT_MS = 30000 };

/* The tenant's job while it has not ended. */
bool job_find_live(struct service *service, const char *tenant, const char *job_id, struct job_record *ret_record,
	uint32_t *ret_slot);
/* How many commands are before it in its lane; UINT32_MAX: not queued. */
uint32_t job_queue_position(struct service *service, const struct job_record *record);

/* A job that has not ended; command may be NULL. UINT32_MAX: position not known. */
struct json_object *
job_live_json(const struct job_record *record, struct json_object *command, uint32_t queue_position);
/* How the agent says it ended. base64: outputs stay encoded. */
struct json_object *job_agent_json(
	const struct job_record *record, struct json_object *command, struct json_object *agent_job, bool base64);
/* It ended without the agent's word. */
struct json_object *job_words_json(const struct job_record *record, struct json_object *command,
	const char *verdict, const char *error, bool base64);
/* A copy without outputs: for lists, and for a full disk. */
struct json_object *job_without_outputs(struct json_object *job);

/* The stored form is the job and who may read it. */
void job_seal(struct json_object *job, const struct job_record *record);
/* True when the tenant may read it; takes the seal off. *ret_prev (may be NULL): the job before it, or "". */
bool job_unseal(struct json_object *job, const char *tenant, char ret_prev[ID_UUID_SIZE]);

/* The job has ended: whoever waits for it in this process gets it. */
void job_waits_tell(struct service *service, uint32_t slot, const char *job_id, struct json_object *job);
void job_wait_end_all(struct service *service);

#endif
