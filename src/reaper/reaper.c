/*
 * reaper.c - the reaper process: a tick a second, and how it leaves.
 *
 * On SIGTERM it leaves at once: what it has taken over has an owner that is gone
 * then, and the next reaper takes it over in turn.
 */
/* SPDX-License-Identifier: MIT */
#include "reaper/reaper.h"
#include "reaper/reaper_priv.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cluster/cluster.h"
#include "conf/config.h"
#include "domain/service.h"
#include "ipc/scoreboard.h"
#include "ipc/server_life.h"
#include "ipc/shm.h"
#include "master/role.h"

#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

enum { TICK_MS = 1000, BUSY_SWEEP_MS = 50, LOG_SWEEP_MS = 60000 };

enum { ON_TERM, ON_INT, ON_ALIVE, ON_TICK, ON_SWEEP, EVENT_COUNT };

struct reaper {
	struct role_env *env;
	struct event_base *base;
	struct cluster *cluster; /* NULL without use_redis, as membership */
	struct membership *membership;
	struct hearing *hearing;
	struct service *service;
	struct reconcile *reconcile;
	struct event *events[EVENT_COUNT];
	int64_t log_swept_ms, prefetch_ms; /* 0: not yet; one that dies often must come to it, too */
	uint32_t ticks, sweep_cursor;
};

static void
reaper_on_signal(evutil_socket_t signum, short what, void *arg)
{
	struct reaper *reaper = arg;

	(void)signum;
	(void)what;
	event_base_loopbreak(reaper->base);
}

static void
reaper_on_alive(evutil_socket_t fd, short what, void *arg)
{
	struct reaper *reaper = arg;
	char byte;

	(void)what;
	if (read(fd, &byte, 1) != 0)
		return;
	log_error("the master process has died: leaving");
	event_base_loopbreak(reaper->base);
}

static void
reaper_on_sweep(evutil_socket_t fd, short what, void *arg)
{
	const struct timeval soon = clock_tv(BUSY_SWEEP_MS);
	struct reaper *reaper = arg;

	(void)fd;
	(void)what;
	if (sweep_sandboxes(reaper->service, &reaper->sweep_cursor))
		event_add(reaper->events[ON_SWEEP], &soon);
}

static bool
a_worker_serves(struct shm_scoreboard *board)
{
	struct proc_info info;

	for (uint32_t slot = 0; slot < SHM_PROCESSES; slot++)
		if (scoreboard_info(board, slot, &info) && info.role == PROC_WORKER && info.state == PROC_READY)
			return true;
	return false;
}

static void
reaper_work(struct reaper *reaper, int64_t now_ms)
{
	hearing_tick(reaper->hearing);
	if (reaper->membership != NULL)
		adoption_scan(reaper->service, reaper->membership);
	recovery_scan(reaper->service);
	reaper_on_sweep(-1, 0, reaper);
	sweep_agents(reaper->service, reaper->ticks++);
	if (now_ms >= reaper->prefetch_ms) {
		prefetch_images(reaper->service);
		reaper->prefetch_ms = now_ms + reaper->env->config->cleanup_interval_seconds * 1000;
	}
	if (now_ms - reaper->log_swept_ms < LOG_SWEEP_MS)
		return;
	sweep_record_log(reaper->service);
	reaper->log_swept_ms = now_ms;
}

static void
reaper_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct reaper *reaper = arg;
	bool serves = a_worker_serves(shm_scoreboard(reaper->env->shm));

	(void)fd;
	(void)what;
	if (serves)
		server_life_begin(shm_life(reaper->env->shm), clock_boot_ms());
	reaper_work(reaper, clock_boot_ms());
	if (reaper->membership != NULL)
		membership_count(reaper->membership);
	if (serves)
		server_life_end(shm_life(reaper->env->shm), clock_boot_ms());
}

static int
reaper_listen(struct reaper *reaper, struct err *err)
{
	struct timeval tick = clock_tv(TICK_MS);

	reaper->events[ON_TERM] = evsignal_new(reaper->base, SIGTERM, reaper_on_signal, reaper);
	reaper->events[ON_INT] = evsignal_new(reaper->base, SIGINT, reaper_on_signal, reaper);
	reaper->events[ON_ALIVE] = event_new(
		reaper->base, reaper->env->alive_fd, EV_READ | EV_PERSIST, reaper_on_alive, reaper);
	reaper->events[ON_TICK] = event_new(reaper->base, -1, EV_PERSIST, reaper_on_tick, reaper);
	reaper->events[ON_SWEEP] = event_new(reaper->base, -1, 0, reaper_on_sweep, reaper);
	for (int i = 0; i < EVENT_COUNT; i++)
		if (reaper->events[i] == NULL ||
			(i != ON_SWEEP && event_add(reaper->events[i], i == ON_TICK ? &tick : NULL) != 0))
			return err_set(err, ERR_INTERNAL, "the event loop cannot be set up");
	event_active(reaper->events[ON_TICK], EV_TIMEOUT, 1);
	return 0;
}

static int
reaper_join(struct reaper *reaper, struct err *err)
{
	struct role_env *env = reaper->env;
	struct cluster_options cluster = { .base = reaper->base,
		.config = env->config,
		.shm = env->shm,
		.self = env->self,
		.role = "reaper",
		.warns = true };
	struct membership_options membership = {
		.base = reaper->base, .config = env->config, .board = shm_scoreboard(env->shm), .self = env->self
	};

	if (!env->config->use_redis)
		return 0;
	if (cluster_create(&cluster, &reaper->cluster, err) != 0)
		return -1;
	membership.cluster = reaper->cluster;
	reaper->membership = membership_create(&membership);
	return 0;
}

static int
reaper_serve(struct reaper *reaper, struct err *err)
{
	struct role_env *env = reaper->env;
	struct service_options options = { .base = reaper->base,
		.config = env->config,
		.shm = env->shm,
		.notify = env->notify,
		.self = env->self };

	if (reaper->cluster == NULL)
		return service_create(&options, &reaper->service, err);
	reaper->hearing = hearing_new(reaper->base, env->config, reaper->cluster, env->self);
	options.share = hearing_share(reaper->hearing);
	if (service_create(&options, &reaper->service, err) != 0)
		return -1;
	membership_serve(reaper->membership, reaper->service);
	return hearing_begin(reaper->hearing, reaper->service, err);
}

static int
reaper_open(struct reaper *reaper, struct err *err)
{
	reaper->base = event_base_new();
	if (reaper->base == NULL)
		return err_set(err, ERR_INTERNAL, "no event loop: raise the limit of open files");
	if (reaper_join(reaper, err) != 0)
		return -1;
	if (reaper_serve(reaper, err) != 0)
		return -1;
	reaper->reconcile = reconcile_create(reaper->base, reaper->service, reaper->membership);
	return reaper_listen(reaper, err);
}

static void
reaper_close(struct reaper *reaper)
{
	for (int i = 0; i < EVENT_COUNT; i++)
		if (reaper->events[i] != NULL)
			event_free(reaper->events[i]);
	hearing_end(reaper->hearing);
	if (reaper->membership != NULL)
		membership_serve(reaper->membership, NULL);
	service_free(reaper->service);
	hearing_free(reaper->hearing);
	reconcile_free(reaper->reconcile);
	membership_free(reaper->membership);
	cluster_free(reaper->cluster);
	if (reaper->base != NULL)
		event_base_free(reaper->base);
}

int
reaper_main(struct role_env *env)
{
	struct reaper reaper = { .env = env };
	int status = ROLE_EXIT_FAILED;
	struct err err;

	if (reaper_open(&reaper, &err) != 0) {
		role_failed(env, &err);
	} else {
		role_ready(env);
		event_base_dispatch(reaper.base);
		status = ROLE_EXIT_OK;
	}
	reaper_close(&reaper);
	return status;
}
