/* spawner.c - sets the role up, runs its loop, takes it down. */
/* SPDX-License-Identifier: MIT */
#include "spawner/spawner.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "master/role.h"
#include "spawner/child.h"
#include "spawner/dispatch.h"
#include "spawner/image_cache.h"
#include "spawner/make.h"
#include "spawner/peer.h"
#include "spawner/pool.h"
#include "spawner/site.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPARE_HELPERS = 2, DRAIN_MS = 5000, DRAIN_TICK_MS = 20, SLOTS_MIN = 64 };
/* The kernel's ids end at 2^32 - 2; the last range must fit below. */
#define LAST_ID 4294901760LL

struct spawner {
	struct role_env *env;
	struct site site;
	struct dispatch dispatch;
	struct event *on_child, *on_term, *on_int, *on_alive, *drain;
	int64_t drain_until;
};

static void
on_child(evutil_socket_t signum, short what, void *arg)
{
	struct spawner *sp = arg;
	pid_t pid;
	int status;

	(void)signum;
	(void)what;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pool_reaped(sp->dispatch.pool, pid) || pool_reaped(sp->dispatch.janitor, pid) ||
			image_cache_reaped(sp->dispatch.images, pid))
			continue;
		dispatch_ended(&sp->dispatch, pid, status);
	}
}

/* A create or a removal that is under way is finished first; what waits in line is not begun. */
static void
on_drain(evutil_socket_t fd, short what, void *arg)
{
	struct spawner *sp = arg;
	struct timeval tick = clock_tv(DRAIN_TICK_MS);

	(void)fd;
	(void)what;
	if (!pool_is_busy(sp->dispatch.pool) || clock_boot_ms() >= sp->drain_until)
		event_base_loopbreak(sp->dispatch.base);
	else
		event_add(sp->drain, &tick);
}

static void
on_term(evutil_socket_t signum, short what, void *arg)
{
	struct spawner *sp = arg;

	if (sp->drain_until != 0)
		return;
	sp->drain_until = clock_boot_ms() + DRAIN_MS;
	pool_stop(sp->dispatch.pool);
	pool_stop(sp->dispatch.janitor);
	on_drain(signum, what, sp);
}

static void
on_leave(evutil_socket_t signum, short what, void *arg)
{
	struct spawner *sp = arg;

	(void)signum;
	(void)what;
	event_base_loopbreak(sp->dispatch.base);
}

static struct event *
add_event(struct event *event)
{
	if (event == NULL || event_add(event, NULL) != 0)
		abort();
	return event;
}

static void
add_events(struct spawner *sp)
{
	struct event_base *base = sp->dispatch.base;

	sp->on_child = add_event(evsignal_new(base, SIGCHLD, on_child, sp));
	sp->on_term = add_event(evsignal_new(base, SIGTERM, on_term, sp));
	sp->on_int = add_event(evsignal_new(base, SIGINT, on_leave, sp));
	if (sp->env->alive_fd >= 0)
		sp->on_alive = add_event(event_new(base, sp->env->alive_fd, EV_READ, on_leave, sp));
	sp->drain = evtimer_new(base, on_drain, sp);
	if (sp->drain == NULL)
		abort();
}

static void
free_events(struct spawner *sp)
{
	struct event *events[] = { sp->on_child, sp->on_term, sp->on_int, sp->on_alive, sp->drain };

	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		if (events[i] != NULL)
			event_free(events[i]);
	}
}

static uint32_t
slot_count(const struct config *config)
{
	int64_t fit = (LAST_ID - config->idmap_base) / SITE_IDS;
	int64_t want = config->max_sandboxes + SLOTS_MIN; /* some are being removed while others are made */

	return (uint32_t)(want < fit ? want : fit);
}

/* In a child, as every making: what it starts becomes our child and not the master's. */
static int
rehearse(const struct site *site, struct err *err)
{
	struct {
		int rc;
		struct err err;
	} outcome = { 0 };
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair");
	pid = child_fork(site, ends[1], err);
	if (pid == 0) {
		outcome.rc = make_probe(site, &outcome.err);
		(void)send(ends[1], &outcome, sizeof outcome, MSG_NOSIGNAL);
		_exit(0);
	}
	close(ends[1]);
	n = pid > 0 ? recv(ends[0], &outcome, sizeof outcome, MSG_WAITALL) : 0;
	close(ends[0]);
	if (pid < 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	while (waitpid(-1, &status, WNOHANG) > 0)
		;
	if (n != (ssize_t)sizeof outcome)
		return err_set(err, ERR_INTERNAL, "the rehearsal of making a sandbox has died");
	*err = outcome.err;
	return outcome.rc;
}

/* Whether sandboxes can be made here; a host that can't still answers, with the reason. */
static void
judge_host(struct dispatch *d, const struct err *site_err)
{
	struct err err;

	if (site_err != NULL)
		snprintf(d->problem, sizeof d->problem, "%s", site_err->msg);
	else if (d->site->agent_fd < 0)
		snprintf(d->problem, sizeof d->problem, "%s", d->site->agent_problem);
	else if (rehearse(d->site, &err) != 0)
		snprintf(d->problem, sizeof d->problem, "%s", err.msg);
	d->usable = d->problem[0] == '\0';
	if (!d->usable)
		log_error("this host can't make sandboxes: %s", d->problem);
}

static int
create_parts(struct spawner *sp, bool site_is_open, struct err *err)
{
	struct dispatch *d = &sp->dispatch;
	struct image_cache_options images = { .site = &sp->site,
		.on_progress = dispatch_image_progress,
		.on_ready = dispatch_image_ready,
		.arg = d };
	struct peers_options peers = { .listen_fd = sp->env->spawner_fd,
		.user = sp->site.user,
		.message_max = request_message_max(),
		.on_message = request_on_message,
		.arg = d };
	int64_t helpers = get_nprocs() + SPARE_HELPERS;

	if (helpers > d->config->max_concurrent_creates)
		helpers = d->config->max_concurrent_creates;
	d->boxes = boxes_create(slot_count(d->config));
	d->base = event_base_new();
	if (d->base == NULL)
		return err_set(err, ERR_INTERNAL, "event_base_new failed");
	if (pool_create(d->base, &sp->site, (unsigned)helpers, &d->pool, err) != 0 ||
		pool_create(d->base, &sp->site, 1, &d->janitor, err) != 0 ||
		image_cache_create(d->base, &images, &d->images, err) != 0 ||
		peers_create(d->base, &peers, &d->peers, err) != 0)
		return -1;
	add_events(sp);
	return site_is_open ? adopt_sandboxes(d, err) : 0;
}

static void
free_parts(struct spawner *sp)
{
	struct dispatch *d = &sp->dispatch;

	free_events(sp);
	peers_free(d->peers);
	image_cache_free(d->images);
	pool_free(d->janitor);
	pool_free(d->pool);
	boxes_free(d->boxes);
	if (d->base != NULL)
		event_base_free(d->base);
	site_close(&sp->site);
}

int
spawner_main(struct role_env *env)
{
	struct spawner sp = { .env = env, .dispatch = { .config = env->config, .site = &sp.site } };
	struct err err, site_err;
	bool site_is_open;
	int status = ROLE_EXIT_OK;

	(void)signal(SIGPIPE, SIG_IGN);
	site_is_open = site_open(&sp.site, env->config, &site_err) == 0;
	judge_host(&sp.dispatch, site_is_open ? NULL : &site_err);
	if (create_parts(&sp, site_is_open, &err) != 0) {
		role_failed(env, &err);
		status = ROLE_EXIT_FAILED;
	} else {
		role_ready(env);
		if (event_base_dispatch(sp.dispatch.base) < 0)
			status = ROLE_EXIT_FAILED;
	}
	free_parts(&sp);
	return status;
}
