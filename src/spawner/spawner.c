/* spawner.c - sets the role up, runs its loop, takes it down. */
/* SPDX-License-Identifier: MIT */
#include "spawner/spawner.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/proc.h"
#include "conf/config.h"
#include "ipc/shm.h"
#include "master/role.h"
#include "spawn/destroyed.h"
#include "spawn/peer.h"
#include "spawn/request.h"
#include "spawn/turns.h"
#include "spawner/blanks.h"
#include "spawner/pool/child.h"
#include "spawner/disk/disk_watch.h"
#include "spawner/dispatch.h"
#include "spawner/images/image_cache.h"
#include "spawner/make/make.h"
#include "spawner/pool/pool.h"
#include "spawner/site.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	SPARE_HELPERS = 2,
	HELPERS_MAX = 8,
	JANITORS = 4,
	DRAIN_MS = 5000,
	DRAIN_TICK_MS = 20,
	SLOTS_MIN = 64,
	REHEARSALS = 3
};
/* The kernel's ids end at 2^32 - 2; the last range must fit below. */
#define LAST_ID 4294901760LL

struct spawner {
	struct role_env *env;
	struct site site;
	struct dispatch dispatch;
	struct event *on_child, *on_term, *on_int, *on_alive, *drain;
	int64_t drain_until;
	struct disk_watch *disk_watch; /* NULL: the filesystem limits */
};

/* The pid is the child's own until it is reaped: what else names it is read before. */
static bool
reap_one(pid_t *ret_pid, uint64_t *ret_start, int *ret_status)
{
	siginfo_t info = { 0 };

	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
		return false;
	*ret_start = proc_start_time(info.si_pid);
	*ret_pid = waitpid(info.si_pid, ret_status, WNOHANG);
	return *ret_pid > 0;
}

static void
on_child(evutil_socket_t signum, short what, void *arg)
{
	struct spawner *sp = arg;
	uint64_t start;
	pid_t pid;
	int status;

	(void)signum;
	(void)what;
	while (reap_one(&pid, &start, &status)) {
		if (pool_reaped(sp->dispatch.pool, pid) || pool_reaped(sp->dispatch.janitor, pid) ||
			image_cache_reaped(sp->dispatch.images, pid))
			continue;
		dispatch_ended(&sp->dispatch, pid, start, status);
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
	int64_t want = config->max_sandboxes + config->sandbox_blanks +
		SLOTS_MIN; /* some are being removed while others are made */

	return (uint32_t)(want < fit ? want : fit);
}

static int
make_rehearsal(void *arg, struct err *err)
{
	return make_probe(arg, err);
}

/* In a child, as every making: what it starts becomes our child and not the master's. */
static int
rehearse(struct site *site, struct err *err)
{
	int rc = child_run(site, make_rehearsal, site, err);

	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	return rc;
}

/* One that was killed says nothing about the host. */
static int
rehearse_to_the_end(struct site *site, struct err *err)
{
	int rc, count = 0;

	do
		rc = rehearse(site, err);
	while (rc != 0 && err->code == ERR_INTERNAL && ++count < REHEARSALS);
	return rc;
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
	else if (rehearse_to_the_end(d->site, &err) != 0)
		snprintf(d->problem, sizeof d->problem, "%s", err.msg);
	d->usable = d->problem[0] == '\0';
	if (!d->usable)
		log_error("this host can't make sandboxes: %s", d->problem);
}

static unsigned
helper_count(const struct config *config)
{
	int fit = get_nprocs() + SPARE_HELPERS;

	if (config->max_concurrent_creates > 0)
		return (unsigned)config->max_concurrent_creates;
	return (unsigned)(fit < HELPERS_MAX ? fit : HELPERS_MAX);
}

static int
create_parts(struct spawner *sp, bool site_is_open, struct err *err)
{
	struct dispatch *d = &sp->dispatch;
	struct image_cache_options images = { .site = &sp->site,
		.on_progress = dispatch_image_progress,
		.on_ready = dispatch_image_ready,
		.list_used = dispatch_list_images,
		.arg = d,
		.board = sp->env->shm != NULL ? shm_scoreboard(sp->env->shm) : NULL,
		.self = sp->env->self };
	struct peers_options peers = { .listen_fd = sp->env->spawner_fd,
		.user = sp->site.user,
		.message_max = spawn_request_max(),
		.on_message = request_on_message,
		.arg = d };
	struct turns_options turns = {
		.tell = dispatch_tell_place, .arg = d, .board = images.board, .self = images.self
	};

	d->board = images.board;
	d->self = images.self;
	d->destroyed = destroyed_open(sp->site.memory_fd);
	d->boxes = boxes_create(slot_count(d->config), d->config->idmap_base, net_first_address(&sp->site.net),
		net_capacity(&sp->site.net));
	d->base = event_base_new();
	if (d->base == NULL)
		return err_set(err, ERR_INTERNAL, "event_base_new failed");
	if (pool_create(d->base, &sp->site, helper_count(d->config), &turns, &d->pool, err) != 0 ||
		pool_create(d->base, &sp->site, JANITORS, NULL, &d->janitor, err) != 0 ||
		image_cache_create(d->base, &images, &d->images, err) != 0 ||
		peers_create(d->base, &peers, &d->peers, err) != 0)
		return -1;
	if (site_is_open && !sp->site.disk.quota)
		sp->disk_watch = disk_watch_create(d->base, &sp->site, dispatch_disk_measured, d);
	net_keeper_open(&d->net, d->base, &sp->site, d->boxes);
	add_events(sp);
	if (site_is_open && adopt_sandboxes(d, err) != 0)
		return -1;
	blanks_begin(d);
	return 0;
}

static void
free_parts(struct spawner *sp)
{
	struct dispatch *d = &sp->dispatch;

	free_events(sp);
	net_keeper_close(&d->net);
	disk_watch_free(sp->disk_watch);
	peers_free(d->peers);
	image_cache_free(d->images);
	pool_free(d->janitor);
	pool_free(d->pool);
	boxes_free(d->boxes);
	destroyed_close(d->destroyed);
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
