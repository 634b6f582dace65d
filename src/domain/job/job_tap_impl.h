/* job_tap_impl.h - the inside of a tap, for its files. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_JOB_TAP_IMPL_H
#define ORCHARD_DOMAIN_JOB_TAP_IMPL_H

#include "domain/job/job_tap.h"
#include "backend/agent_client.h"
#include "ipc/sandbox_table.h"

struct job_tap {
	struct service *service;
	char tenant[SANDBOX_TENANT_SIZE];
	char job_id[ID_UUID_SIZE];
	job_tap_f *done;
	void *arg;
	struct job_tap_ask ask;
	struct event *soon;
	struct agent_call *call;
	bool in_store; /* the store still owes its answer */
	bool far; /* another server's, and it ran when Redis was last asked: in the sandbox below */
	char far_sandbox[SANDBOX_ID_SIZE], far_uid[ID_UUID_SIZE];
	bool stopped; /* and nobody waits for it */
	bool closed;
	struct json_object *result; /* ended: as stored */
	size_t result_size;
	struct json_object *raw[JOB_STREAMS]; /* base64 of what the result shows repaired; NULL: it shows all */
	uint8_t *bytes[JOB_STREAMS]; /* decoded from one of them */
	size_t bytes_len[JOB_STREAMS];
	uint8_t *piece[JOB_STREAMS]; /* of the agent's answer */
	struct job_tap_answer answer;
};

extern const char *const job_tap_streams[JOB_STREAMS];

/* The piece is the callback's until it returns; the tap may be gone by then. */
void job_tap_tell(struct job_tap *tap, const struct err *why);
void job_tap_not_found(struct job_tap *tap);
/* The agent's answer. */
void job_tap_on_body(struct job_tap *tap, struct json_object *body);
bool job_tap_wants_of_agent(const struct job_tap *tap, enum job_stream stream);
bool job_tap_has_agent(const struct sandbox_record *sandbox);
int job_tap_ask_agent(
	struct job_tap *tap, const struct sandbox_record *sandbox, agent_done_f *done, struct err *err) MUSTCHECK;

/* --- job_tap_result.c: of a job that has ended --- */
/* Sealed, as it is stored; tells. */
void job_tap_take_result(struct job_tap *tap, struct json_object *value);
void job_tap_serve_result(struct job_tap *tap);
void job_tap_forget(struct job_tap *tap);

#endif
