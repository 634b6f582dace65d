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
struct job_board;
struct job_feed;
struct job_live;
struct job_output;
struct job_store;
struct job_stdin;
struct job_taking;
struct job_wait;
struct key_share;
struct key_store;
struct lanes;
struct record_log;
struct sandbox_ask;
struct sandbox_entry;
struct sandbox_make;
struct sandbox_measuring;
struct sandbox_probe;
struct sandbox_removal;
struct sandbox_share;
struct sandbox_wait;

LIST_HEAD(exec_list, exec);
LIST_HEAD(exec_submit_list, exec_submit);
LIST_HEAD(host_ask_list, host_ask);
LIST_HEAD(job_feed_list, job_feed);
LIST_HEAD(job_output_list, job_output);
LIST_HEAD(job_stdin_list, job_stdin);
LIST_HEAD(job_wait_list, job_wait);
LIST_HEAD(exec_tidy_list, exec_tidy);
LIST_HEAD(job_taking_list, job_taking);
LIST_HEAD(exec_told_list, exec_told);
struct exec_retell;
LIST_HEAD(sandbox_ask_list, sandbox_ask);
LIST_HEAD(sandbox_entry_list, sandbox_entry);
LIST_HEAD(sandbox_make_list, sandbox_make);
LIST_HEAD(sandbox_measuring_list, sandbox_measuring);
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
	struct record_log *lasting_log; /* of job results, too; segments that last longer */
	struct record_log *key_log;
	struct job_store *store;
	struct key_store *keys;
	struct event *wake;
	/* NULL: sandboxes are shared with no other server. */
	const struct service_share *share;
	struct lanes *lanes;
	struct job_board *board;
	int64_t far_look_ms; /* how soon who waits for another server's job looks again, having heard nothing */
	struct job_taking_list takings;
	struct sandbox_share *sandboxes;
	struct key_share *key_share;
	char host[ID_UUID_SIZE]; /* cluster_host() */
	int64_t shared_since_ms; /* when Redis came back last; 0: never yet */
	service_changed_f *on_sandbox; /* NULL: nobody here hears of every change */
	void *on_sandbox_arg;
	struct job_live *live; /* NULL: others look for untold ends */
	struct exec_retell *retell; /* NULL: never yet */
	struct watch_table watches;
	struct exec_lock_limits limits;
	uint32_t execs, makes, waiters;
	uint64_t exec_cookie; /* the last one given */
	struct exec_list exec_buckets[SERVICE_EXEC_BUCKETS]; /* by cookie */
	struct exec_submit_list submits;
	struct exec_tidy_list tidies;
	struct exec_told_list tolds;
	struct job_feed_list job_feeds;
	struct job_output_list job_outputs;
	struct job_stdin_list job_stdins;
	size_t stdin_bytes; /* that wait here for their command to take them */
	struct job_wait_list job_waits;
	struct sandbox_wait_list sandbox_waits;
	struct sandbox_entry_list entries;
	struct sandbox_ask_list asks;
	uint32_t reaps, adoptions; /* of the asks */
	struct sandbox_make_list sandbox_makes;
	struct sandbox_measuring_list measurings;
	uint32_t measuring_count;
	struct sandbox_removal_list removals;
	uint32_t fresh_removals; /* sandbox_removals() */
	struct sandbox_probe_list probes;
	struct host_ask_list host_asks;
	int64_t host_cpu_milli, host_memory_bytes; /* 0: not known yet */
	uint32_t host_networks;
};

void service_share_begin(struct service *service, const struct service_share *share);
/* Before anything that may still ask is freed: whoever waits for an answer of Redis is told. */
void service_share_end_jobs(struct service *service);
uint32_t service_share_busy(const struct service *service);
void service_share_end(struct service *service);
/* Whoever waits for what a key stands for is told. */
void service_share_end_keys(struct service *service);
void service_share_end_sandboxes(struct service *service);

struct event *service_timer(struct service *service, void (*on_time)(int fd, short what, void *arg), void *arg);
void service_timer_set(struct event *timer, int64_t ms);

/* Is there a place among the waiters? ERR_BUSY. */
int service_waiter_check(const struct service *service, struct err *err) MUSTCHECK;
/* A place among the waiters; ERR_BUSY over max_waiters. */
int service_waiter_add(struct service *service, struct err *err) MUSTCHECK;
void service_waiter_drop(struct service *service);

/*
 * Room for one more call that may wait long at that sandbox's agent; ERR_BUSY. An agent takes 4096 connections:
 * all workers together leave some for writes, and some more for commands.
 */
enum agent_share { AGENT_SHARE_STREAMS = 3072, AGENT_SHARE_WRITES = 3584 };
int service_agent_admit(
	const struct service *service, const char *sandbox_uid, enum agent_share share, struct err *err) MUSTCHECK;

/* Whoever asked one of the stores with that arg is not told any more: for what is freed, or has changed its mind. */
void service_forget(struct service *service, const void *arg);

struct shm_sandboxes *service_sandboxes(const struct service *service);
struct shm_jobs *service_jobs(const struct service *service);

/* Borrows from the record. */
struct agent_target service_target(const struct sandbox_record *record);
/* Where sandboxes are, as answers name it: "local", or a namespace of the cluster. */
const char *service_namespace(const struct service *service);

#endif
