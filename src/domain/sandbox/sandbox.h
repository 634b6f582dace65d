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
#include "cluster/sandbox_mirror.h"
#include "domain/sandbox/expiry.h"
#include "ipc/sandbox_table.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct idempotency_key;
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
	int64_t disk_bytes; /* 0: no limit */
	int64_t create_timeout_s;
	int64_t ttl_ms, idle_timeout_ms; /* or SANDBOX_TIME_DEFAULT */
	const char *working_dir; /* NULL: the image's */
	struct egress egress; /* with a network: where to */
	struct json_object *labels; /* string map or NULL */
	struct json_object *env; /* string map or NULL */
};

/* Reads and checks a create body; faults go into the reader (422 when it has any). */
void sandbox_spec_read(const struct config *config, struct json_reader *reader, struct sandbox_spec *ret_spec);

/*
 * Records it as pending and starts making it. record: what is there then, borrowed; existing: the same create was asked
 * before (same id, same spec, same tenant). NULL: why is ERR_EXISTS, ERR_NO_CAPACITY, ERR_INVALID (image), ERR_DENIED
 * (image), ERR_CONFLICT, ERR_UNAVAILABLE. Calls done once, now or later.
 */
typedef void
sandbox_entered_f(const struct sandbox_record *record, bool existing, const struct err *why, void *arg);
void sandbox_create(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	sandbox_entered_f *done, void *arg);
/*
 * The same under an Idempotency-Key: the first create of that key is the only one, and its answer (sandbox_created_json)
 * is given again also when the sandbox is gone. Calls done once, now or later; answer is borrowed. Besides
 * ERR_KEY_CONFLICT (another request has the key), ERR_OUTCOME_LOST (it may have been made and be gone), ERR_BUSY.
 */
typedef void sandbox_created_f(struct json_object *answer, const struct err *why, void *arg);
void sandbox_create_keyed(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	const struct idempotency_key *key, sandbox_created_f *done, void *arg);
int sandbox_get(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	struct err *err) MUSTCHECK;
/*
 * The record as sandbox_json has it, and what the sandbox takes of the host ("usage"), asked of the driver or, where that
 * cannot tell, of its agent: null for one that is not ready, and where the answer does not come at once. Calls done once,
 * now or later; json is owned by it.
 */
typedef void sandbox_measured_f(struct json_object *json, void *arg);
void
sandbox_measure(struct service *service, const struct sandbox_record *record, sandbox_measured_f *done, void *arg);
/* Newest first. Returns how many were stored (at most max); *ret_cursor is "" at the end. */
struct sandbox_filter {
	const char *label; /* "name=value", each label is compared as that; NULL: any */
	int status; /* enum sandbox_status or -1 */
	const char *cursor; /* of the page before; NULL: the first */
	uint32_t limit;
};
int sandbox_list(struct service *service, const char *tenant, const struct sandbox_filter *filter,
	struct json_object **ret_list, char ret_cursor[96], struct err *err) MUSTCHECK;
/* record: as it is then, borrowed. Calls done once, now or later. */
struct sandbox_change {
	struct json_object *labels; /* NULL: unchanged */
	int64_t ttl_ms, idle_timeout_ms; /* negative: unchanged; ttl counts from now */
};
typedef void sandbox_changed_f(const struct sandbox_record *record, const struct err *why, void *arg);
void sandbox_patch(struct service *service, const char *tenant, const char *id, const struct sandbox_change *change,
	sandbox_changed_f *done, void *arg);
int sandbox_heartbeat(struct service *service, const char *tenant, const char *id, struct err *err) MUSTCHECK;
/*
 * From done on nobody finds the id here; the rest happens behind it, also if this process dies. Deleting
 * what was deleted or reaped lately is success; what never was is ERR_NOT_FOUND. Another server's: ERR_UNAVAILABLE when
 * it cannot be told. Calls done once, now or later.
 */
typedef void sandbox_told_f(const struct err *why, void *arg);
void sandbox_delete(struct service *service, const char *tenant, const char *id, sandbox_told_f *done, void *arg);

/*
 * Where sandboxes are shared: an id that is not known here may be another server's. True: it should be asked for before
 * anything is said of it.
 */
bool sandbox_must_look(struct service *service, const char *tenant, const char *id);
/* Calls done once, never before it returns, unless cancelled: what other servers know of it is known here then. */
struct sandbox_ask;
int sandbox_look_start(struct service *service, const char *tenant, const char *id, sandbox_told_f *done, void *arg,
	struct sandbox_ask **ret_look, struct err *err) MUSTCHECK;
void sandbox_look_cancel(struct sandbox_ask *look);

/* Calls done once when the status is final (ready, failed) or the sandbox is gone, or with ERR_TIMEOUT. */
typedef void sandbox_wait_f(const struct sandbox_record *record, const struct err *why, void *arg);
int sandbox_wait_start(struct service *service, const char *tenant, const char *id, int64_t timeout_ms,
	sandbox_wait_f *done, void *arg, struct sandbox_wait **ret_wait, struct err *err) MUSTCHECK;
void sandbox_wait_cancel(struct sandbox_wait *wait);

/* --- for the reaper --- */
/* Takes a record over whose owner is dead: asks the driver again (pending) or goes on removing (deleting). */
void sandbox_resume(struct service *service, uint32_t slot);
/*
 * Removes it because of a rule, as delete does. judged: the record as the rule saw it; ERR_CONFLICT when it was used,
 * prolonged or deleted since, ERR_NOT_FOUND when it is gone. Where sandboxes are shared, Redis is asked first whether it
 * was used at another server, and it goes when the answer is there.
 */
int sandbox_reap(struct service *service, uint32_t slot, const struct sandbox_record *judged, enum expiry_rule rule,
	struct err *err) MUSTCHECK;
/* Terminals are open in it, or commands queued or running: it is not idle, and needs no heartbeat. */
bool sandbox_is_busy(const struct service *service, uint32_t slot, const struct sandbox_record *record);
/* How many removals of this process are under way or asked for whose driver has not failed at them so far. */
uint32_t sandbox_removals(const struct service *service);
/* Its agent has ended by itself: failed, with the reason; its running jobs end `agent_lost`. */
void sandbox_lost(struct service *service, uint32_t slot, const char *uid, const char *reason);
/* It may not answer any more, and why: not ready, with these words, until its agent is heard, which is asked from now on. */
void sandbox_silent(struct service *service, uint32_t slot, const char *uid, const char *words);
/* ERR_AGENT_UNREACHABLE for who waited in vain for its agent: for how long that has been silent, and why if that is known. */
void sandbox_silent_err(struct service *service, const char *tenant, const char *id, struct err *ret_err);

/* --- for whoever puts what other servers say into the table --- */
/*
 * Something came of it there: waiters are told, commands of what has failed or is going end, and ours that was deleted
 * elsewhere is removed.
 */
void sandbox_heard(struct service *service, enum mirror_outcome what, const struct mirror_place *place);
/* Deletes that life of ours, as its client has asked another server to. */
void sandbox_unwanted(struct service *service, uint32_t slot, const char *uid);

/*
 * The home of that record is gone, or is this server, whose table had lost it: this server is asked to be its home. It then
 * has no owner, and whoever recovers what dead processes left goes on with it.
 */
void sandbox_adopt(struct service *service, const struct sandbox_record *record);
/* How many of these are not decided so far. */
uint32_t sandbox_adoptions(const struct service *service);

/* Is its agent, which did not answer, back? Asks until it is; nothing to do for any other. */
void sandbox_probe(struct service *service, uint32_t slot);
/* Does its agent, which nobody doubts, answer? If not, the sandbox is not ready until it does. */
void sandbox_check(struct service *service, uint32_t slot, const struct sandbox_record *record);

/* The shapes of the REST API. */
struct json_object *sandbox_json(const struct service *service, const struct sandbox_record *record); /* GET */
/* POST */
struct json_object *sandbox_created_json(const struct service *service, const struct sandbox_record *record);

#endif
