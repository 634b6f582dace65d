/*
 * service.c - the parts one process works with, and the one place it is woken at.
 *
 * Everything the domain does in a process hangs on struct service: it is made
 * after the fork and freed before the exit. What other processes changed comes by
 * the eventfd: places granted by the exec lock, then changed slots, each handed
 * to those who watch it.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/service.h"
#include "domain/exec/exec_priv.h"
#include "domain/sandbox/expiry.h"
#include "domain/job/job_priv.h"
#include "domain/resources.h"
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/driver.h"
#include "backend/job_store.h"
#include "backend/key_store.h"
#include "backend/record_log.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "cluster/key_share.h"
#include "conf/config.h"
#include "ipc/notify.h"
#include "ipc/server_life.h"
#include "ipc/shm.h"

#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SHARED_SIGNS_MS = 5000 };

struct event *
service_timer(struct service *service, void (*on_time)(int fd, short what, void *arg), void *arg)
{
	struct event *timer = event_new(service->base, -1, 0, on_time, arg);

	if (timer == NULL)
		abort();
	return timer;
}

void
service_timer_set(struct event *timer, int64_t ms)
{
	struct timeval tv = clock_tv(ms);

	event_add(timer, &tv);
}

const char *
service_namespace(const struct service *service)
{
	return config_is_kubernetes(service->config) ? service->config->sandbox_namespace : "local";
}

void
service_count(struct service *service, enum metric metric, int64_t n)
{
	scoreboard_add(shm_scoreboard(service->shm), service->self, metric, n);
}

int
service_waiter_check(const struct service *service, struct err *err)
{
	if (service->waiters < service->config->max_waiters)
		return 0;
	return err_set(err, ERR_BUSY, "too many requests wait on this server (max_waiters); try again soon");
}

int
service_waiter_add(struct service *service, struct err *err)
{
	if (service_waiter_check(service, err) != 0)
		return -1;
	service->waiters++;
	service_count(service, METRIC_WAITERS, 1);
	return 0;
}

void
service_waiter_drop(struct service *service)
{
	service->waiters--;
	service_count(service, METRIC_WAITERS, -1);
}

int
service_agent_admit(const struct service *service, const char *sandbox_uid, enum agent_share share, struct err *err)
{
	int64_t workers = service->config->workers > 0 ? service->config->workers : sysconf(_SC_NPROCESSORS_ONLN);

	if (agent_client_calls(service->agents, sandbox_uid) < share / (workers > 0 ? workers : 1))
		return 0;
	return err_set(err, ERR_BUSY, "too many requests wait for this sandbox's commands; try again soon");
}

void
service_forget(struct service *service, const void *arg)
{
	job_store_forget(service->store, arg);
	key_store_forget(service->keys, arg);
	if (service->key_share != NULL)
		key_share_forget(service->key_share, arg);
}

struct shm_sandboxes *
service_sandboxes(const struct service *service)
{
	return shm_sandboxes(service->shm);
}

struct shm_jobs *
service_jobs(const struct service *service)
{
	return shm_jobs(service->shm);
}

struct agent_target
service_target(const struct sandbox_record *record)
{
	return (struct agent_target){
		.endpoint = record->endpoint,
		.sandbox_id = record->id,
		.sandbox_uid = record->uid,
		.token = record->agent_token,
	};
}

static void
service_take_grants(struct service *service)
{
	struct exec_grant grants[64];
	uint32_t n;

	do {
		n = exec_lock_take(shm_exec_lock(service->shm), service->self, grants, 64);
		for (uint32_t i = 0; i < n; i++)
			exec_granted(service, &grants[i]);
	} while (n > 0);
}

/* Heard of anew before it is looked at. */
static void
service_tell_change(struct service *service, uint32_t slot)
{
	notify_watch(service->notify, service->self.slot, NOTIFY_SANDBOX, slot);
	service->on_sandbox(slot, service->on_sandbox_arg);
}

void
service_watch_sandboxes(struct service *service, service_changed_f *on_change, void *arg)
{
	uint32_t capacity = sandbox_table_capacity(service_sandboxes(service));

	service->on_sandbox = on_change;
	service->on_sandbox_arg = arg;
	for (uint32_t slot = 0; on_change != NULL && slot < capacity; slot++)
		service_tell_change(service, slot);
}

static void
service_on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct service *service = arg;
	uint32_t slot;

	(void)fd;
	(void)what;
	notify_drain(service->notify, service->self.slot);
	service_take_grants(service);
	for (int kind = 0; kind < NOTIFY_KIND_COUNT; kind++) {
		while ((slot = notify_take(service->notify, service->self.slot, (enum notify_kind)kind)) !=
			UINT32_MAX) {
			if (kind == NOTIFY_SANDBOX && service->on_sandbox != NULL)
				service_tell_change(service, slot);
			watch_fire(&service->watches, (enum notify_kind)kind, slot);
		}
	}
}

static int
service_open_stores(struct service *service, struct err *err)
{
	char dir[PATH_MAX];
	struct record_log_options jobs = { .dir = dir, .max_bytes = service->config->job_store_max_bytes };
	struct record_log_options keys = {
		.dir = dir, .keep = true, .keep_ended_s = service->config->idempotency_min_seconds
	};

	if (snprintf(dir, sizeof dir, "%s/jobs", service->config->state_dir) >= (int)sizeof dir)
		return err_set(err, ERR_INVALID, "state_dir is too long");
	if (record_log_open(&jobs, shm_index(service->shm), &service->log, err) != 0 ||
		record_log_open(&jobs, shm_index(service->shm), &service->lasting_log, err) != 0)
		return err_prefix(err, "job store");
	snprintf(dir, sizeof dir, "%s/keys", service->config->state_dir);
	if (record_log_open(&keys, shm_keys(service->shm), &service->key_log, err) != 0)
		return err_prefix(err, "store of Idempotency-Keys");
	service->store = job_store_create(service->log, service->lasting_log);
	job_store_batch(service->store, service->base);
	service->keys = key_store_create(service->key_log);
	return 0;
}

static int
service_open_parts(struct service *service, struct err *err)
{
	if (service->driver == NULL &&
		driver_asker_create(service->base, service->config, &service->driver, err) != 0)
		return err_prefix(err, "driver");
	if (service_open_stores(service, err) != 0)
		return -1;
	return agent_client_create(service->base, &(struct agent_client_options){ 0 }, &service->agents, err);
}

static int
service_listen(struct service *service, struct err *err)
{
	int fd = notify_fd(service->notify, service->self.slot);

	service->wake = event_new(service->base, fd, EV_READ | EV_PERSIST, service_on_wake, service);
	if (service->wake == NULL || event_add(service->wake, NULL) != 0)
		return err_set(err, ERR_INTERNAL, "cannot watch the event descriptor of this process");
	return 0;
}

int
service_create(const struct service_options *options, struct service **ret_service, struct err *err)
{
	struct service *service = alloc_zero(1, sizeof *service);

	service->base = options->base;
	service->config = options->config;
	service->shm = options->shm;
	service->notify = options->notify;
	service->self = options->self;
	service->driver = options->driver;
	service->limits = (struct exec_lock_limits){
		.running = (uint32_t)options->config->max_concurrent_execs,
		.per_sandbox = (uint32_t)options->config->sandbox_exec_queue_limit,
	};
	watch_table_init(&service->watches, service->notify, service->self.slot);
	service_share_begin(service, options->share);
	if (service_open_parts(service, err) != 0 || service_listen(service, err) != 0) {
		service_free(service);
		return -1;
	}
	service_learn_host(service);
	*ret_service = service;
	return 0;
}

uint32_t
service_busy(const struct service *service)
{
	return service->makes + service_share_busy(service);
}

uint32_t
service_execs(const struct service *service)
{
	return service->execs;
}

void
service_settle(struct service *service)
{
	key_store_flush(service->keys);
	job_store_flush(service->store);
}

void
service_free(struct service *service)
{
	if (service == NULL)
		return;
	if (service->wake != NULL)
		event_free(service->wake);
	if (service->store != NULL)
		service_settle(service);
	service_share_end_jobs(service);
	job_feed_end_all(service);
	job_output_end_all(service);
	job_stdin_end_all(service);
	job_wait_end_all(service);
	sandbox_wait_end_all(service);
	service_share_end_keys(service);
	sandbox_enter_end_all(service);
	sandbox_ask_end_all(service);
	exec_submit_end_all(service);
	exec_free_all(service);
	service_share_end(service);
	exec_tidy_free_all(service);
	sandbox_make_free_all(service);
	sandbox_removal_free_all(service);
	service_share_end_sandboxes(service);
	sandbox_probe_free_all(service);
	sandbox_measure_end_all(service);
	if (service->driver != NULL)
		service->driver->ops->free(service->driver);
	host_ask_free_all(service);
	if (service->agents != NULL)
		agent_client_free(service->agents);
	if (service->store != NULL)
		job_store_free(service->store);
	key_store_free(service->keys);
	record_log_close(service->key_log);
	record_log_close(service->lasting_log);
	record_log_close(service->log);
	free(service);
}

const struct config *
service_config(const struct service *service)
{
	return service->config;
}

struct shm *
service_shm(const struct service *service)
{
	return service->shm;
}

struct driver *
service_driver(const struct service *service)
{
	return service->driver;
}

struct expiry_limits
service_expiry_limits(const struct service *service)
{
	int64_t since_ms = server_life_since(shm_life(service->shm), clock_boot_ms());

	/* Signs of life that other servers could not tell of meanwhile come in then. */
	if (service->shared_since_ms > 0 && since_ms < service->shared_since_ms + SHARED_SIGNS_MS)
		since_ms = service->shared_since_ms + SHARED_SIGNS_MS;
	return expiry_limits(service->config, since_ms);
}

struct record_log *
service_record_log(const struct service *service)
{
	return service->log;
}

struct record_log *
service_key_log(const struct service *service)
{
	return service->key_log;
}
