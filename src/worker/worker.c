/*
 * worker.c - the worker process: its loop, and how it leaves.
 *
 * Draining ends when no request is open and no work is driven from here. At the
 * deadline clients that still wait are answered with what is known, so that they
 * ask again by id; commands that run go on and are taken over by another process.
 */
/* SPDX-License-Identifier: MIT */
#include "worker/worker.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "conf/config.h"
#include "domain/service.h"
#include "ipc/shm.h"
#include "master/role.h"
#include "worker/api.h"

#include <event2/event.h>
#include <signal.h>
#include <string.h>

enum {
	DRAIN_TICK_MS = 20,
	ORPHAN_DRAIN_MS = 2000, /* the master has died: nobody looks after us */
	LAST_BYTES_MS = 1000 /* for answers that are on their way out */
};

struct worker {
	struct role_env *env;
	struct event_base *base;
	struct cluster *cluster;
	struct cluster_listener listener;
	struct service_share share;
	struct service *service;
	struct api *api;
	struct event *on_term, *on_int, *on_alive, *on_tick;
	int64_t deadline_ms; /* of open requests */
	int64_t last_ms; /* of the bytes of their answers; 0: requests are still open */
};

static void
worker_leave_at_once(evutil_socket_t signum, short what, void *arg)
{
	struct worker *worker = arg;

	(void)signum;
	(void)what;
	event_base_loopbreak(worker->base);
}

/* Requests and work first, then the rest of the answers' bytes; each has a deadline. */
static void
worker_check_drained(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	int64_t now = clock_boot_ms();
	bool open = api_open_requests(worker->api) > 0 || api_hears(worker->api) ||
		service_busy(worker->service) > 0;

	(void)fd;
	(void)what;
	if (worker->last_ms == 0 && open && now < worker->deadline_ms)
		return;
	if (worker->last_ms == 0) {
		worker->last_ms = now + LAST_BYTES_MS;
		/* First those that were being recorded: they are not to be asked again. */
		service_settle(worker->service);
		api_end_waits(worker->api);
		if (service_execs(worker->service) > 0)
			log_info("%u commands go on without this process", service_execs(worker->service));
	}
	if (api_open_connections(worker->api) == 0 || now >= worker->last_ms)
		event_base_loopbreak(worker->base);
}

static void
worker_drain(struct worker *worker, int64_t timeout_ms)
{
	static const struct timeval tick = { .tv_usec = DRAIN_TICK_MS * 1000 };
	int64_t deadline_ms = clock_boot_ms() + timeout_ms;

	if (worker->deadline_ms == 0 || deadline_ms < worker->deadline_ms)
		worker->deadline_ms = deadline_ms;
	if (worker->api->draining)
		return;
	scoreboard_set_state(shm_scoreboard(worker->env->shm), worker->env->self, PROC_DRAINING);
	log_info("stopping: %u requests are open", api_open_requests(worker->api));
	api_drain(worker->api);
	event_add(worker->on_tick, &tick);
}

static void
worker_on_term(evutil_socket_t signum, short what, void *arg)
{
	struct worker *worker = arg;

	(void)signum;
	(void)what;
	worker_drain(worker, worker->env->config->drain_timeout_seconds * 1000);
}

static void
worker_on_alive(evutil_socket_t fd, short what, void *arg)
{
	struct worker *worker = arg;
	char byte;

	(void)what;
	if (read(fd, &byte, 1) != 0)
		return;
	event_del(worker->on_alive);
	log_error("the master process has died: leaving");
	worker_drain(worker, ORPHAN_DRAIN_MS);
}

static int
worker_join(struct worker *worker, struct err *err)
{
	struct role_env *env = worker->env;
	struct cluster_options options = {
		.base = worker->base, .config = env->config, .shm = env->shm, .self = env->self, .role = "worker"
	};

	return env->config->use_redis ? cluster_create(&options, &worker->cluster, err) : 0;
}

static void
worker_on_redis(void *ctx, bool up)
{
	struct worker *worker = ctx;

	service_on_redis(worker->service, up);
}

static int
worker_serve(struct worker *worker, struct service_options *options, struct err *err)
{
	if (worker->cluster == NULL)
		return service_create(options, &worker->service, err);
	worker->share = (struct service_share){
		.redis = cluster_redis(worker->cluster),
		.prefix = cluster_prefix(worker->cluster),
		.replica = cluster_replica(worker->cluster),
	};
	options->share = &worker->share;
	if (service_create(options, &worker->service, err) != 0)
		return -1;
	worker->listener = (struct cluster_listener){ .on_change = worker_on_redis, .ctx = worker };
	cluster_listen(worker->cluster, &worker->listener);
	return 0;
}

static int
worker_open(struct worker *worker, struct err *err)
{
	struct role_env *env = worker->env;
	struct service_options service = {
		.config = env->config, .shm = env->shm, .notify = env->notify, .self = env->self
	};
	struct api_options api = { .listen_fd = env->listen_fd,
		.terminal_fd = env->terminal_fd,
		.config = env->config,
		.shm = env->shm,
		.self = env->self };

	worker->base = event_base_new();
	if (worker->base == NULL)
		return err_set(err, ERR_INTERNAL, "no event loop: raise the limit of open files");
	service.base = api.base = worker->base;
	if (worker_join(worker, err) != 0 || worker_serve(worker, &service, err) != 0)
		return -1;
	api.service = worker->service;
	api.cluster = worker->cluster;
	return api_create(&api, &worker->api, err);
}

static int
worker_listen_to_master(struct worker *worker, struct err *err)
{
	worker->on_term = evsignal_new(worker->base, SIGTERM, worker_on_term, worker);
	worker->on_int = evsignal_new(worker->base, SIGINT, worker_leave_at_once, worker);
	worker->on_alive = event_new(
		worker->base, worker->env->alive_fd, EV_READ | EV_PERSIST, worker_on_alive, worker);
	worker->on_tick = event_new(worker->base, -1, EV_PERSIST, worker_check_drained, worker);
	if (worker->on_term == NULL || worker->on_int == NULL || worker->on_alive == NULL ||
		worker->on_tick == NULL)
		return err_set(err, ERR_INTERNAL, "out of memory");
	if (event_add(worker->on_term, NULL) != 0 || event_add(worker->on_int, NULL) != 0 ||
		event_add(worker->on_alive, NULL) != 0)
		return err_set(err, ERR_INTERNAL, "signals cannot be watched");
	return 0;
}

static void
free_event(struct event *event)
{
	if (event != NULL)
		event_free(event);
}

static void
worker_close(struct worker *worker)
{
	free_event(worker->on_term);
	free_event(worker->on_int);
	free_event(worker->on_alive);
	free_event(worker->on_tick);
	api_free(worker->api);
	if (worker->listener.on_change != NULL)
		cluster_unlisten(worker->cluster, &worker->listener);
	if (worker->service != NULL)
		service_free(worker->service);
	cluster_free(worker->cluster);
	if (worker->base != NULL)
		event_base_free(worker->base);
}

int
worker_main(struct role_env *env)
{
	struct worker worker = { .env = env };
	int status = ROLE_EXIT_FAILED;
	struct err err;

	if (worker_open(&worker, &err) != 0 || worker_listen_to_master(&worker, &err) != 0) {
		role_failed(env, &err);
	} else {
		role_ready(env);
		event_base_dispatch(worker.base);
		status = ROLE_EXIT_OK;
	}
	worker_close(&worker);
	return status;
}
