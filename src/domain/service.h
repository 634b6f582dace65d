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
#include "domain/sandbox/expiry.h"
#include "ipc/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct driver;
struct err;
struct event_base;
struct notify;
struct record_log;
struct redis;
struct sandbox_share;
struct service;
struct shm;

/* How sandboxes and jobs are shared with other servers. Borrowed as long as the service. */
struct service_share {
	struct redis *redis;
	const char *prefix; /* of keys in Redis */
	const char *replica; /* this server's name among the others */
};

struct service_options {
	struct event_base *base;
	const struct config *config;
	struct shm *shm;
	struct notify *notify;
	struct proc_ref self;
	const struct service_share *share; /* NULL: with nobody */
	struct driver *driver; /* owned from then on, also on failure; NULL: the one of config->driver */
};

int service_create(const struct service_options *options, struct service **ret_service, struct err *err) MUSTCHECK;
/* Redis can be written to, or not any more. */
void service_on_redis(struct service *service, bool up);
/* Reaper: from now on ends of this server's jobs that no process told others of are looked for, and told. */
void service_tell_untold(struct service *service);
/* Reaper: Redis may have lost results of this server: those of the last minutes, or all that are kept. */
void service_tell_again(struct service *service, bool all);
/* Reaper: the stream of changes says that a lane, or a job, has news; to: the server that it is for, or "". */
void service_heard_lane(struct service *service, const char *key, const char *to);
void service_heard_job(struct service *service, const char *job_id, const char *to);
/* Reaper: a server thinks that this one is gone, and has taken that job over. */
void service_heard_claim(struct service *service, const char *job_id, const char *to);
/* Reaper: what was said to this server may have been missed. */
void service_hear_anew(struct service *service);
/*
 * Reaper: takes over the live jobs of a server that is gone, as far as their agents can be asked from here. last_word: also
 * gives up those of hosts that are gone. Told when none of them are left, and not if that failed: it is to be asked again.
 * One that is under way goes on, and nothing is told of this call.
 */
typedef void service_taken_f(const char *server, void *arg);
void
service_take_over(struct service *service, const char *server, bool last_word, service_taken_f *done, void *arg);
/* Reaper: sandboxes as they are shared; NULL: with nobody. */
struct sandbox_share *service_sandbox_share(const struct service *service);
/* Reaper: to be told of each sandbox's slot in which something may have changed, at once of all of them. */
typedef void service_changed_f(uint32_t slot, void *arg);
void service_watch_sandboxes(struct service *service, service_changed_f *on_change, void *arg);
/* May rules be asked of sandboxes? Not while nobody can say whether they were used at other servers. */
bool service_may_judge(const struct service *service);
/*
 * Work that is better ended by this process: creates that are not done, ends that other servers have not been told of.
 * A draining process waits for 0, and for its open requests.
 */
uint32_t service_busy(const struct service *service);
/* Commands that this process drives. Those that no request waits for go on without it: whoever comes takes them over. */
uint32_t service_execs(const struct service *service);
/* What requests of this turn of the loop asked for is recorded and they are told, as at the turn's end. */
void service_settle(struct service *service);
/*
 * Leaves the work that is left to others: running jobs stay recorded (the reaper takes them over),
 * waits end with ERR_UNAVAILABLE.
 */
void service_free(struct service *service);

/* Adds to a counter of this process. */
void service_count(struct service *service, enum metric metric, int64_t n);

const struct config *service_config(const struct service *service);
struct shm *service_shm(const struct service *service);
struct driver *service_driver(const struct service *service);
/* The limits of expiry.h as they are now. */
struct expiry_limits service_expiry_limits(const struct service *service);
struct record_log *service_record_log(const struct service *service);
struct record_log *service_key_log(const struct service *service); /* of Idempotency-Keys */

/* Ready to serve? Problems in words, one per line, in buf (empty when fine). Asks driver and stores. */
typedef void service_ready_f(bool ready, const char *problems, void *arg);
void service_check_ready(struct service *service, service_ready_f *done, void *arg);

/* The body of GET /resources (owned by the caller), or why not. */
struct json_object;
typedef void service_resources_f(struct json_object *resources, const struct err *why, void *arg);
void service_resources(struct service *service, service_resources_f *done, void *arg);

#endif
