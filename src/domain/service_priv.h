/* service_priv.h - the inside of struct service, for the files of this directory. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_SERVICE_PRIV_H
#define ORCHARD_DOMAIN_SERVICE_PRIV_H

#include "domain/service.h"
#include "domain/watch.h"
#include "ipc/exec_lock.h"
#include "ipc/sandbox_table.h"

#include "base/alloc.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct agent_client;
struct agent_target;
struct driver;
struct event;
struct exec;
struct exec_submit;
struct host_ask;
struct job_store;
struct job_wait;
struct record_log;
struct sandbox_make;
struct sandbox_probe;
struct sandbox_removal;
struct sandbox_wait;

LIST_HEAD(exec_list, exec);
LIST_HEAD(exec_submit_list, exec_submit);
LIST_HEAD(host_ask_list, host_ask);
LIST_HEAD(job_wait_list, job_wait);
LIST_HEAD(sandbox_make_list, sandbox_make);
LIST_HEAD(sandbox_probe_list, sandbox_probe);
LIST_HEAD(sandbox_removal_list, sandbox_removal);
LIST_HEAD(sandbox_wait_list, sandbox_wait);

enum { SERVICE_EXEC_BUCKETS = 1024 };

struct service {
	struct event_base *base;
	const struct config *config;
	struct shm *shm;
	struct notify *notify;
	struct proc_ref self;
	struct agent_client *agents;
	struct driver *driver;
	struct record_log *log;
	struct job_store *store;
	struct event *wake;
	struct watch_table watches;
	struct exec_lock_limits limits;
	uint32_t execs, makes, waiters;
	uint64_t exec_cookie; /* the last one given */
	struct exec_list exec_buckets[SERVICE_EXEC_BUCKETS]; /* by cookie */
	struct exec_submit_list submits;
	struct job_wait_list job_waits;
	struct sandbox_wait_list sandbox_waits;
	struct sandbox_make_list sandbox_makes;
	struct sandbox_removal_list removals;
	struct sandbox_probe_list probes;
	struct host_ask_list host_asks;
	int64_t host_cpu_milli, host_memory_bytes; /* 0: not known yet */
};

struct event *service_timer(struct service *service, void (*on_time)(int fd, short what, void *arg), void *arg);
void service_timer_set(struct event *timer, int64_t ms);
void service_count(struct service *service, enum metric metric, int64_t n);

/* A place among the waiters; ERR_BUSY over max_waiters. */
int service_waiter_add(struct service *service, struct err *err) MUSTCHECK;
void service_waiter_drop(struct service *service);

struct shm_sandboxes *service_sandboxes(const struct service *service);
struct shm_jobs *service_jobs(const struct service *service);

/* Borrows from the record. */
struct agent_target service_target(const struct sandbox_record *record);

#endif
