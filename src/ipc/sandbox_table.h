/*
 * sandbox_table.h - every sandbox this server knows, shared by all processes.
 *
 * Readers copy a record without a lock (sequence count, re-read when a writer
 * was in between); a lookup by id is O(1). Writers hold the record's robust
 * mutex for microseconds, never across I/O, and bracket the change, so that a
 * record whose writer died halfway is marked SANDBOX_DOUBTFUL and never trusted.
 * `uid` names one life of an id: every change names it, and finds nothing when
 * the id was deleted and made again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SANDBOX_TABLE_H
#define ORCHARD_IPC_SANDBOX_TABLE_H

#include "base/cleanup.h"
#include "base/id.h"
#include "ipc/egress.h"
#include "ipc/record_index.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct shm_sandboxes;

enum sandbox_status {
	SANDBOX_PENDING,
	SANDBOX_UNSCHEDULABLE,
	SANDBOX_READY,
	SANDBOX_FAILED,
	SANDBOX_DELETING,
	SANDBOX_PAUSED,
	SANDBOX_DOUBTFUL /* torn by a killed writer: the reaper removes it */
};

enum {
	SANDBOX_ID_SIZE = 64,
	SANDBOX_TENANT_SIZE = 32,
	SANDBOX_IMAGE_SIZE = 512,
	SANDBOX_MESSAGE_SIZE = 384,
	SANDBOX_LABELS_SIZE = 1024,
	SANDBOX_DIR_SIZE = 256,
	SANDBOX_ENDPOINT_SIZE = 108,
	SANDBOX_RULE_SIZE = 32
};

/* A time that the client did not name: the setting's, whatever that is by then. */
enum { SANDBOX_TIME_DEFAULT = -1 };

/* Plain data, fixed size, strings NUL-terminated. Ages are boot-clock milliseconds, 0 = never. */
struct sandbox_record {
	char id[SANDBOX_ID_SIZE];
	char uid[ID_UUID_SIZE];
	char tenant[SANDBOX_TENANT_SIZE];
	char image[SANDBOX_IMAGE_SIZE]; /* as the client named it */
	char spec_digest[65]; /* SHA-256 of the normalised request: "same create again?" */
	char agent_token[ID_TOKEN_SIZE];
	char endpoint[SANDBOX_ENDPOINT_SIZE]; /* "unix:/path" or "tcp:ip:port"; "" while unknown */
	char labels[SANDBOX_LABELS_SIZE]; /* JSON object, compact */
	char working_dir[SANDBOX_DIR_SIZE]; /* "" : the image's */
	char message[SANDBOX_MESSAGE_SIZE]; /* status_message */
	char reap_rule[SANDBOX_RULE_SIZE]; /* which rule took it: "ttl", "pending", "delete"... */
	uint32_t status; /* enum sandbox_status */
	bool block_network;
	bool ready; /* live: the agent answers */
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t disk_bytes; /* 0: no limit */
	int64_t create_timeout_s;
	int64_t ttl_ms; /* or SANDBOX_TIME_DEFAULT */
	int64_t idle_timeout_ms; /* or SANDBOX_TIME_DEFAULT; 0: off */
	double created_at; /* wall clock */
	int64_t created_ms;
	int64_t ttl_from_ms; /* where ttl_ms counts from: creation, or the last PATCH */
	int64_t ready_ms;
	int64_t heartbeat_ms;
	int64_t activity_ms;
	int64_t status_ms; /* last change of status or of ready */
	int64_t terminals_ms; /* when a gateway last said that terminals are open */
	uint32_t terminals; /* open ones, true if a gateway said so lately: sandbox_has_terminals() */
	struct proc_ref owner; /* who is making or removing it now */
	struct egress egress; /* with a network: where to */
	struct record_location env; /* its env as JSON in the record log; segment 0: none */
	char last_job[ID_UUID_SIZE]; /* ended last; job_record.prev_job and the stored jobs chain on */
	char last_prev[ID_UUID_SIZE]; /* the one before last_job, which need not say so itself yet */
	int64_t pid; /* local driver: the agent's pid outside; 0: none */
	uint64_t pid_start;
	char home
		[ID_UUID_SIZE]; /* the replica that made it and has it; "": this server. Nobody here judges or removes it */
	bool elsewhere; /* its home is on another host: its agent cannot be reached from here */
	uint64_t version; /* of what the replicas share, as far as it was heard of; 0: nothing yet */
};

/*
 * Adds a record; its slot is in *ret_slot. ERR_EXISTS when the id is there (any
 * status, any tenant), ERR_NO_CAPACITY when the table is full.
 */
int sandbox_table_insert(struct shm_sandboxes *table, const struct sandbox_record *record, uint32_t *ret_slot,
	struct err *err) MUSTCHECK;
/* Copies the record of id; false when there is none. ret_slot may be NULL. */
bool sandbox_table_find(
	struct shm_sandboxes *table, const char *id, struct sandbox_record *ret_record, uint32_t *ret_slot);
/* Copies the record in slot; false when the slot is free. */
bool sandbox_table_read(struct shm_sandboxes *table, uint32_t slot, struct sandbox_record *ret_record);
/*
 * Calls change() on the record with its lock held; uid must match, else ERR_NOT_FOUND.
 * change() returns 0 to keep what it did, -1 with *err to leave the record as it was.
 * It must be quick, must not touch id or uid, and must not call back into the table.
 */
typedef int sandbox_change_f(struct sandbox_record *record, void *arg, struct err *err);
int sandbox_table_change(struct shm_sandboxes *table, uint32_t slot, const char *uid, sandbox_change_f *change,
	void *arg, struct err *err) MUSTCHECK;
/* Frees the slot if it still holds uid; false when it does not. */
bool sandbox_table_remove(struct shm_sandboxes *table, uint32_t slot, const char *uid);

/* Slots in use have numbers below this; scan 0..bound with sandbox_table_read. */
uint32_t sandbox_table_bound(struct shm_sandboxes *table);
uint32_t sandbox_table_count(struct shm_sandboxes *table);
uint32_t sandbox_table_capacity(struct shm_sandboxes *table);

/*
 * Are terminals open in it? A gateway says so again and again, so that what one that was killed had counted is forgotten.
 */
enum { SANDBOX_TERMINALS_SAY_MS = 4000, SANDBOX_TERMINALS_VALID_MS = 15000 };
bool sandbox_has_terminals(const struct sandbox_record *record, int64_t now_ms);

/* It is still to become ready. */
bool sandbox_is_being_made(const struct sandbox_record *record);

/* Another server's: known here, judged and removed there. */
bool sandbox_is_foreign(const struct sandbox_record *record);

/* "pending", "ready"...: the word of the REST API. */
const char *sandbox_status_name(enum sandbox_status status);

#endif
