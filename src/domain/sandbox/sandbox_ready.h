/* sandbox_ready.h - waiting until a sandbox can be worked in: what calls do that go to its agent at once. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_SANDBOX_READY_H
#define ORCHARD_DOMAIN_SANDBOX_READY_H

#include "base/cleanup.h"
#include "ipc/sandbox_table.h"

#include <stdint.h>

struct err;
struct sandbox_ready;
struct service;

/*
 * record: ready, its agent answers, and it was touched (it counts as used now); borrowed. NULL: why says what is in the
 * way: ERR_NOT_READY (still pending after readiness_wait_seconds, or failed), ERR_AGENT_UNREACHABLE, ERR_DELETED.
 */
typedef void sandbox_ready_f(uint32_t slot, const struct sandbox_record *record, const struct err *why, void *arg);
/* Calls done once, never before it returns, unless cancelled. ERR_NOT_FOUND, ERR_BUSY. */
int sandbox_ready_start(struct service *service, const char *tenant, const char *id, sandbox_ready_f *done,
	void *arg, struct sandbox_ready **ret_ready, struct err *err) MUSTCHECK;
/* Before the service is freed, too. */
void sandbox_ready_cancel(struct sandbox_ready *ready);

#endif
