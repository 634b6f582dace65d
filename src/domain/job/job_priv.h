/* job_priv.h - a job in the shapes of the REST API, and handing ends to waiters of this process. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_PRIV_H
#define ORCHARD_DOMAIN_JOB_PRIV_H

#include "domain/job/job.h"
#include "cluster/job_board.h"
#include "ipc/job_table.h"

#include <stdbool.h>

struct service;

/* --- job_far.c: jobs of other servers --- */
enum { JOB_FAR_LOOK_MS = 1000 }; /* what is heard of them may be lost: who waits looks again so often */
/* Changes of a job that another server drives are posted at this slot: others may be, too. */
uint32_t job_far_slot(const struct service *service, const char *job_id);
/* As job_board_get(); ERR_NOT_FOUND where there are no other servers. */
int job_far_get(
	struct service *service, const char *job_id, job_board_got_f *done, void *arg, struct err *err) MUSTCHECK;
void job_far_forget(struct service *service, const void *arg); /* done is not called */
bool job_far_has_ended(const struct board_answer *answer);
/* A new reference, sealed if it has ended; NULL: not that tenant's. */
struct json_object *job_far_json(const struct board_answer *answer, const char *tenant);
/* The sandbox whose agent has it. ERR_NOT_FOUND; ERR_NOT_READY; ERR_UNAVAILABLE: on another host. */
int job_far_sandbox(struct service *service, const char *tenant, const char *sandbox_id, const char *uid,
	struct sandbox_record *ret_record, struct err *err) MUSTCHECK;

/* --- job_take.c --- */
/* What another server needs to know to take it over, besides how it stands. */
struct json_object *job_take_json(const struct job_record *record, bool base64);
void job_taking_end_all(struct service *service);
/* Is it being taken over just now, and may have no record yet? */
bool job_is_taken(const struct service *service, const char *job_id);
/* Redis says that this live job is one of this server, which has neither a record of it nor its end. */
void job_take_up(struct service *service, const char *job_id, const struct board_answer *answer);

enum { JOB_CANCEL_WAIT_MS = 30000 };

/* The tenant's job while it has not ended. */
bool job_find_live(struct service *service, const char *tenant, const char *job_id, struct job_record *ret_record,
	uint32_t *ret_slot);
/* Its start is told to those who watch its slot: look at it once more after this. */
void job_follow(struct service *service, uint32_t slot, const char *job_id);
/* How many commands are before it in its lane; UINT32_MAX: not queued. */
uint32_t job_queue_position(struct service *service, const struct job_record *record);
/* The job that runs in its lane, or is the next to; "": none that is known. */
void job_blocker(struct service *service, const struct job_record *record, char ret_job_id[ID_UUID_SIZE]);
/* A live job with its place in the queue; command may be NULL. */
struct json_object *
job_standing_json(struct service *service, const struct job_record *record, struct json_object *command);

/* A job that has not ended; command may be NULL. UINT32_MAX: position not known. */
struct json_object *
job_live_json(const struct job_record *record, struct json_object *command, uint32_t queue_position);
/* How the agent says it ended. base64: outputs stay encoded. */
struct json_object *job_agent_json(
	const struct job_record *record, struct json_object *command, struct json_object *agent_job, bool base64);
/* It ended without the agent's word. */
struct json_object *job_words_json(const struct job_record *record, struct json_object *command,
	const char *verdict, const char *error, bool base64);
/* The same, with the outputs that the agent had of it when it was last asked. */
struct json_object *job_cut_json(const struct job_record *record, struct json_object *command, const char *verdict,
	const char *error, struct json_object *agent_job, bool base64);
/* A copy without outputs: for lists, and for a full disk. */
struct json_object *job_without_outputs(struct json_object *job);
/* A copy whose outputs have not many more bytes than that; what is longer is truncated, and says so. */
struct json_object *job_bounded(struct json_object *job, size_t bytes);

/* The stored form is the job and who may read it. */
/*
 * Outputs that are not UTF-8 are shown repaired, and stored as they were besides, in base64. NULL: shown as
 * they were. The caller's references; before job_unseal, which takes them off.
 */
void job_raw_outputs(struct json_object *job, struct json_object **ret_stdout, struct json_object **ret_stderr);
/* Of a sealed one. */
const char *job_seal_tenant(struct json_object *job);
double job_seal_keep(struct json_object *job); /* job_record.keep_until */
void job_seal(struct json_object *job, const struct job_record *record);
/* True when the tenant may read it; takes the seal off. *ret_prev (may be NULL): the job before it, or "". */
bool job_unseal(struct json_object *job, const char *tenant, char ret_prev[ID_UUID_SIZE]);

/* The job has ended: whoever waits for it in this process gets it. */
void job_waits_tell(struct service *service, uint32_t slot, const char *job_id, struct json_object *job);
void job_wait_end_all(struct service *service);
void job_feed_end_all(struct service *service);
void job_output_end_all(struct service *service);
void job_stdin_end_all(struct service *service);

#endif
