/* sandbox_priv.h - what the sandbox files share with each other, with exec and with job. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_SANDBOX_PRIV_H
#define ORCHARD_DOMAIN_SANDBOX_PRIV_H

#include "domain/sandbox.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tenant's sandbox, unless it is going; ERR_NOT_FOUND. ret_slot may be NULL. */
int sandbox_lookup(struct service *service, const char *tenant, const char *id, struct sandbox_record *ret_record,
	uint32_t *ret_slot, struct err *err) MUSTCHECK;
/* The record in slot if that life of it is still there, whatever its status. */
bool sandbox_read_life(struct service *service, uint32_t slot, const char *uid, struct sandbox_record *ret_record);

/* Tells everybody in every process that something about it changed. */
void sandbox_post(struct service *service, uint32_t slot);
/* It was used just now. Cheap: writes at most once a second. */
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

/* Why jobs of a sandbox that is going end, in words. */
void sandbox_gone_words(const char *rule, char *ret_text, size_t size);

/* service_free() */
void sandbox_make_free_all(struct service *service);
void sandbox_removal_free_all(struct service *service);
void sandbox_probe_free_all(struct service *service);
void sandbox_wait_end_all(struct service *service);

#endif
