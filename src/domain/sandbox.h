/*
 * sandbox.h - the life of a sandbox: create, look, wait, change, delete.
 *
 * pending -> ready | failed; any -> deleting -> gone. The record is written
 * before what it describes is made and removed after it is gone. A tenant sees
 * only its own: another's id is ERR_NOT_FOUND everywhere.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_SANDBOX_H
#define ORCHARD_DOMAIN_SANDBOX_H

#include "base/cleanup.h"
#include "ipc/sandbox_table.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct json_object;
struct json_reader;
struct sandbox_wait;
struct service;

/* A create request, checked; strings borrowed from the body it was read from. */
struct sandbox_spec {
	const char *image;
	const char *id; /* NULL: make one up */
	bool block_network;
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t create_timeout_s;
	int64_t ttl_ms, idle_timeout_ms;
	const char *working_dir; /* NULL: the image's */
	struct json_object *labels; /* string map or NULL */
	struct json_object *env; /* string map or NULL */
};

/* Reads and checks a create body; faults go into the reader (422 when it has any). */
void sandbox_spec_read(const struct config *config, struct json_reader *reader, struct sandbox_spec *ret_spec);

/*
 * Records it as pending and starts making it; answers at once. *ret_existing: the same create was asked before
 * (same id, same spec, same tenant) and *ret_record is that one. ERR_EXISTS, ERR_NO_CAPACITY, ERR_INVALID
 * (image), ERR_DENIED (image), ERR_UNAVAILABLE.
 */
int sandbox_create(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	struct sandbox_record *ret_record, bool *ret_existing, struct err *err) MUSTCHECK;
int sandbox_get(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	struct err *err) MUSTCHECK;
/* Newest first. Returns how many were stored (at most max); *ret_cursor is "" at the end. */
struct sandbox_filter {
	const char *label; /* "name=value", each label is compared as that; NULL: any */
	int status; /* enum sandbox_status or -1 */
	const char *cursor; /* of the page before; NULL: the first */
	uint32_t limit;
};
int sandbox_list(struct service *service, const char *tenant, const struct sandbox_filter *filter,
	struct json_object **ret_list, char ret_cursor[96], struct err *err) MUSTCHECK;
/* NULL labels, negative times: unchanged. ttl counts from now. */
int sandbox_patch(struct service *service, const char *tenant, const char *id, struct json_object *labels,
	int64_t ttl_ms, int64_t idle_timeout_ms, struct sandbox_record *ret_record, struct err *err) MUSTCHECK;
int sandbox_heartbeat(struct service *service, const char *tenant, const char *id, struct err *err) MUSTCHECK;
/*
 * From its return on nobody finds the id; the rest happens behind it, also if this process dies. Deleting
 * what was deleted or reaped lately is success; what never was is ERR_NOT_FOUND.
 */
int sandbox_delete(struct service *service, const char *tenant, const char *id, struct err *err) MUSTCHECK;

/* Calls done once when the status is final (ready, failed) or the sandbox is gone, or with ERR_TIMEOUT. */
typedef void sandbox_wait_f(const struct sandbox_record *record, const struct err *why, void *arg);
int sandbox_wait_start(struct service *service, const char *tenant, const char *id, int64_t timeout_ms,
	sandbox_wait_f *done, void *arg, struct sandbox_wait **ret_wait, struct err *err) MUSTCHECK;
void sandbox_wait_cancel(struct sandbox_wait *wait);

/* --- for the reaper --- */
/* Takes a record over whose owner is dead: asks the driver again (pending) or goes on removing (deleting). */
void sandbox_resume(struct service *service, uint32_t slot);
/* Removes it because of a rule ("ttl", "pending", "heartbeat", "doubtful"...), as delete does. */
int
sandbox_reap(struct service *service, uint32_t slot, const char *uid, const char *rule, struct err *err) MUSTCHECK;
/* Its agent has ended by itself: failed, with the reason; its running jobs end `agent_lost`. */
void sandbox_lost(struct service *service, uint32_t slot, const char *uid, const char *reason);

/* Is its agent, which did not answer, back? Asks until it is; nothing to do for any other. */
void sandbox_probe(struct service *service, uint32_t slot);
/* Does its agent, which nobody doubts, answer? If not, the sandbox is not ready until it does. */
void sandbox_check(struct service *service, uint32_t slot, const struct sandbox_record *record);

/* The shapes of the REST API. */
struct json_object *sandbox_json(const struct sandbox_record *record); /* GET */
struct json_object *sandbox_created_json(const struct sandbox_record *record); /* POST */

#endif
