/* sandbox_priv.h - what the sandbox files share with each other, with exec and with job. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_SANDBOX_PRIV_H
#define ORCHARD_DOMAIN_SANDBOX_PRIV_H

#include "domain/sandbox/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tenant's sandbox, unless it is going; ERR_NOT_FOUND. ret_slot may be NULL. */
int sandbox_lookup(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	uint32_t *ret_slot, struct err *err) MUSTCHECK;
/* The record in slot if that life of it is still there, whatever its status. */
bool sandbox_read_life(struct service *service, uint32_t slot, const char *uid, struct sandbox_record *ret_record);

/* A record as it would be made. */
int sandbox_draft(struct service *service, const char *tenant, const struct sandbox_spec *spec,
	struct sandbox_record *record, struct err *err) MUSTCHECK;
/* Records the draft and starts making it, or finds that it is there: as sandbox_create(). env is borrowed during the call. */
void sandbox_enter(struct service *service, struct json_object *env, const struct sandbox_record *draft,
	sandbox_entered_f *done, void *arg);
/* What its making needs of the environment, NULL: nothing; *record says where it is then. */
int sandbox_env_store(
	struct service *service, struct json_object *env, struct sandbox_record *record, struct err *err) MUSTCHECK;
/* ERR_UNAVAILABLE: it is on another host, and nobody here can work in it. */
int sandbox_check_host(const struct sandbox_record *record, struct err *err) MUSTCHECK;

/* --- sandbox_ask.c: what Redis is asked before it is done here; each ends as the call of sandbox.h it is for --- */
void sandbox_ask_patch(struct service *service, const struct sandbox_record *record,
	const struct sandbox_change *change, sandbox_changed_f *done, void *arg);
void
sandbox_ask_delete(struct service *service, const struct sandbox_record *record, sandbox_told_f *done, void *arg);
/* Then sandbox_reap_now(), or it is left. */
int sandbox_ask_reap(struct service *service, uint32_t slot, const struct sandbox_record *judged,
	enum expiry_rule rule, struct err *err) MUSTCHECK;
/* judged: NULL when nothing that happened since counts. */
int sandbox_reap_now(struct service *service, uint32_t slot, const char *uid, const struct sandbox_record *judged,
	enum expiry_rule rule, struct err *err) MUSTCHECK;

/* Tells everybody in every process that something about it changed. */
void sandbox_post(struct service *service, uint32_t slot);
/* For changes that only other servers care to hear of. */
void sandbox_post_shared(struct service *service, uint32_t slot);
/* It was used just now. Cheap: writes ten times a second at most. */
void sandbox_touch(struct service *service, uint32_t slot, const struct sandbox_record *record);

/* Its agent does not answer: `ready` is false until it does again, which is tried from now on. */
void sandbox_unreachable(struct service *service, uint32_t slot, const struct sandbox_record *record);
/* Its agent has answered: `ready` is true again. */
void sandbox_reached(struct service *service, uint32_t slot, const struct sandbox_record *record);

/* Begins or goes on making the pending sandbox in slot; this process is its owner already. */
void sandbox_make_start(struct service *service, uint32_t slot, const struct sandbox_record *record);
/* Begins or goes on removing what is DELETING and owned by this process. */
void sandbox_removal_start(struct service *service, uint32_t slot, const struct sandbox_record *record);
/* Pending or ready -> failed, with the reason; false when it was in another state. */
bool sandbox_fail(struct service *service, uint32_t slot, const char *uid, const char *reason);
/* Removes what the driver still has of a failed one. */
void sandbox_destroy_remains(struct service *service, uint32_t slot, const struct sandbox_record *record);

/* That it existed, and which rule took it (SANDBOX_RULE_DELETE: its client); remembered for idempotency_ttl_seconds. */
#define SANDBOX_RULE_DELETE "delete"
void sandbox_tombstone_put(struct service *service, const struct sandbox_record *record);
bool sandbox_tombstone_find(
	struct service *service, const char *tenant, const char *id, char ret_rule[SANDBOX_RULE_SIZE]);

/* Why jobs of a sandbox that is going end, in words. */
void sandbox_gone_words(const char *rule, char *ret_text, size_t size);

/* service_free() */
void sandbox_make_free_all(struct service *service);
void sandbox_removal_free_all(struct service *service);
void sandbox_probe_free_all(struct service *service);
void sandbox_wait_end_all(struct service *service);
void sandbox_enter_end_all(struct service *service);
void sandbox_ask_end_all(struct service *service);
/* The driver is freed next: it calls nobody back any more. */
void sandbox_measure_end_all(struct service *service);

#endif
