/*
 * service.h - what the domain works with in one process (worker or reaper).
 *
 * One struct service per process. It owns the agent client, the driver and the
 * stores, listens on the process's eventfd (exec grants, changed sandboxes and
 * jobs) and hands each on to exec, sandbox and job.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_SERVICE_H
#define ORCHARD_DOMAIN_SERVICE_H

#include "base/cleanup.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct driver;
struct err;
struct event_base;
struct notify;
struct record_log;
struct service;
struct shm;

struct service_options {
	struct event_base *base;
	const struct config *config;
	struct shm *shm;
	struct notify *notify;
	struct proc_ref self;
	struct driver *driver; /* owned from then on, also on failure; NULL: the one of config->driver */
};

int service_create(const struct service_options *options, struct service **ret_service, struct err *err) MUSTCHECK;
/* Work that this process drives now: execs not ended, creates not done. A draining process waits for 0. */
uint32_t service_busy(const struct service *service);
/*
 * Leaves the work that is left to others: running jobs stay recorded (the reaper takes them over),
 * waits end with ERR_UNAVAILABLE.
 */
void service_free(struct service *service);

const struct config *service_config(const struct service *service);
struct shm *service_shm(const struct service *service);
struct driver *service_driver(const struct service *service);
struct record_log *service_record_log(const struct service *service);

/* Ready to serve? Problems in words, one per line, in buf (empty when fine). Asks driver and stores. */
typedef void service_ready_f(bool ready, const char *problems, void *arg);
void service_check_ready(struct service *service, service_ready_f *done, void *arg);

/* The body of GET /resources (owned by the caller), or why not. */
struct json_object;
typedef void service_resources_f(struct json_object *resources, const struct err *why, void *arg);
void service_resources(struct service *service, service_resources_f *done, void *arg);

#endif
