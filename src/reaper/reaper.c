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
#include "domain/service.h"
#include "master/role.h"

#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

enum { TICK_MS = 1000, LOG_SWEEP_MS = 60000 };

enum { ON_TERM, ON_INT, ON_ALIVE, ON_TICK, EVENT_COUNT };

struct reaper {
	struct role_env *env;
	struct event_base *base;
	struct service *service;
	struct reconcile *reconcile;
	struct event *events[EVENT_COUNT];
	int64_t log_swept_ms;
	uint32_t ticks;
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
reaper_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct reaper *reaper = arg;
	int64_t now_ms = clock_boot_ms();

	(void)fd;
	(void)what;
	recovery_scan(reaper->service);
	sweep_sandboxes(reaper->service);
	sweep_agents(reaper->service, reaper->ticks++);
	if (now_ms - reaper->log_swept_ms < LOG_SWEEP_MS)
		return;
	sweep_record_log(reaper->service);
	reaper->log_swept_ms = now_ms;
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
	for (int i = 0; i < EVENT_COUNT; i++)
		if (reaper->events[i] == NULL || event_add(reaper->events[i], i == ON_TICK ? &tick : NULL) != 0)
			return err_set(err, ERR_INTERNAL, "the event loop cannot be set up");
	event_active(reaper->events[ON_TICK], EV_TIMEOUT, 1);
	return 0;
}

static int
reaper_open(struct reaper *reaper, struct err *err)
{
	struct role_env *env = reaper->env;

	reaper->base = event_base_new();
	if (reaper->base == NULL)
		return err_set(err, ERR_INTERNAL, "no event loop: raise the limit of open files");
	if (service_create(
		    &(struct service_options){
			    .base = reaper->base,
			    .config = env->config,
			    .shm = env->shm,
			    .notify = env->notify,
			    .self = env->self,
		    },
		    &reaper->service, err) != 0)
		return -1;
	reaper->reconcile = reconcile_create(reaper->base, reaper->service);
	return reaper_listen(reaper, err);
}

static void
reaper_close(struct reaper *reaper)
{
	for (int i = 0; i < EVENT_COUNT; i++)
		if (reaper->events[i] != NULL)
			event_free(reaper->events[i]);
	service_free(reaper->service);
	reconcile_free(reaper->reconcile);
	if (reaper->base != NULL)
		event_base_free(reaper->base);
}

int
reaper_main(struct role_env *env)
{
	struct reaper reaper = { .env = env, .log_swept_ms = clock_boot_ms() };
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
