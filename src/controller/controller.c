/* controller.c - sets the role up, runs its loop, takes it down. */
/* SPDX-License-Identifier: MIT */
#include "controller/controller.h"

#include "backend/agent_client.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "controller/answers.h"
#include "controller/claim.h"
#include "controller/control.h"
#include "controller/counts.h"
#include "controller/ground.h"
#include "controller/orders.h"
#include "controller/pod_policy.h"
#include "controller/pod_spec.h"
#include "controller/pods.h"
#include "controller/removal.h"
#include "controller/resources.h"
#include "ipc/shm.h"
#include "kube/kube_config.h"
#include "kube/kube_curl.h"
#include "kube/kube_watch.h"
#include "master/role.h"
#include "spawn/destroyed.h"
#include "spawn/peer.h"
#include "spawn/request.h"
#include "spawn/turns.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* PROBE_CONNECT_MS: the first packets to an address that is just being set up may be lost. */
enum { PLACES_DEFAULT = 50, PROBE_CONNECT_MS = 1000, DRAIN_MS = 5000, DRAIN_TICK_MS = 20 };

struct controller {
	struct control control;
	struct role_env *env;
	struct kube_config *cluster;
	struct event *on_term, *on_int, *on_alive, *drain;
	int64_t drain_until;
};

static void
on_leave(evutil_socket_t fd, short what, void *arg)
{
	struct controller *controller = arg;

	(void)fd;
	(void)what;
	event_base_loopbreak(controller->control.base);
}

/* What the API server is being asked to make is answered first; then the namespace is free for another server. */
static void
on_drain(evutil_socket_t fd, short what, void *arg)
{
	struct controller *controller = arg;
	struct control *c = &controller->control;
	struct timeval tick = clock_tv(DRAIN_TICK_MS);
	struct kube_stats stats;

	(void)fd;
	(void)what;
	kube_client_stats(c->client, &stats);
	if (clock_boot_ms() >= controller->drain_until || (stats.busy == 0 && claim_leave(c->claim)))
		event_base_loopbreak(c->base);
	else
		event_add(controller->drain, &tick);
}

static void
on_term(evutil_socket_t signum, short what, void *arg)
{
	struct controller *controller = arg;

	if (controller->drain_until != 0)
		return;
	controller->drain_until = clock_boot_ms() + DRAIN_MS;
	controller->control.starting = true; /* nothing new */
	on_drain(signum, what, controller);
}

static struct event *
add_event(struct event *event)
{
	if (event == NULL || event_add(event, NULL) != 0)
		abort();
	return event;
}

static void
add_events(struct controller *controller)
{
	struct event_base *base = controller->control.base;

	controller->on_term = add_event(evsignal_new(base, SIGTERM, on_term, controller));
	controller->on_int = add_event(evsignal_new(base, SIGINT, on_leave, controller));
	if (controller->env->alive_fd >= 0)
		controller->on_alive = add_event(
			event_new(base, controller->env->alive_fd, EV_READ, on_leave, controller));
	controller->drain = must_alloc(evtimer_new(base, on_drain, controller));
}

static int
open_client(struct controller *controller, struct err *err)
{
	struct control *c = &controller->control;
	struct kube_options options;

	if (kube_config_load(c->config, &controller->cluster, err) != 0)
		return -1;
	kube_options_from_config(c->config, &options);
	return kube_client_create(c->base, controller->cluster, &options, &c->client, err);
}

static int
open_parts(struct controller *controller, struct err *err)
{
	struct control *c = &controller->control;
	struct agent_client_options agents = { .connect_timeout_ms = PROBE_CONNECT_MS };
	struct peers_options peers = { .listen_fd = controller->env->spawner_fd,
		.user = geteuid(),
		.message_max = spawn_request_max(),
		.on_message = answers_on_message,
		.arg = c };
	struct turns_options turns = { .tell = orders_tell_place,
		.board = shm_scoreboard(controller->env->shm),
		.self = controller->env->self };

	c->turns = turns_create(c->base, &turns);
	if (pod_policy_check(c->config, err) != 0 || pod_spec_create(c->config, &c->spec, err) != 0 ||
		open_client(controller, err) != 0 || agent_client_create(c->base, &agents, &c->agents, err) != 0 ||
		peers_create(c->base, &peers, &c->peers, err) != 0 ||
		claim_create(c, controller->cluster, &c->claim, err) != 0)
		return -1;
	add_events(controller);
	c->ground = ground_create(c, c->config->in_cluster ? kube_config_namespace(controller->cluster) : NULL);
	c->resources = resources_create(c);
	c->counts = counts_create(c, shm_scoreboard(controller->env->shm), controller->env->self);
	pods_watch(c);
	return 0;
}

static void
close_parts(struct controller *controller)
{
	struct control *c = &controller->control;
	struct event *events[] = { controller->on_term, controller->on_int, controller->on_alive,
		controller->drain };

	c->starting = true;
	orders_free_all(c);
	removals_free_all(c);
	resources_free(c->resources);
	counts_free(c->counts);
	kube_watch_stop(c->watch);
	pods_free_all(c);
	ground_free(c->ground);
	claim_free(c->claim);
	peers_free(c->peers);
	if (c->agents != NULL)
		agent_client_free(c->agents);
	kube_client_free(c->client);
	kube_config_free(controller->cluster);
	pod_spec_free(c->spec);
	for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
		if (events[i] != NULL)
			event_free(events[i]);
	}
	id_map_free(c->removals);
	turns_free(c->turns);
	id_map_free(c->orders);
	id_map_free(c->pods);
	destroyed_close(c->destroyed);
	event_base_free(c->base);
}

int
controller_main(struct role_env *env)
{
	const struct config *config = env->config;
	struct controller controller = {
		.env = env,
		.control = { .config = config,
			.base = must_alloc(event_base_new()),
			.places = config->max_concurrent_creates > 0 ? (uint32_t)config->max_concurrent_creates
								     : PLACES_DEFAULT,
			.pods = id_map_create(),
			.orders = id_map_create(),
			.removals = id_map_create(),
			.destroyed = destroyed_open(-1) },
	};
	int status = ROLE_EXIT_OK;
	struct err err;

	(void)signal(SIGPIPE, SIG_IGN);
	if (open_parts(&controller, &err) != 0) {
		role_failed(env, &err);
		status = ROLE_EXIT_FAILED;
	} else {
		role_ready(env);
		if (event_base_dispatch(controller.control.base) < 0)
			status = ROLE_EXIT_FAILED;
	}
	close_parts(&controller);
	return status;
}

int
controller_check(const struct config *config, struct err *err)
{
	struct kube_config *cluster;
	struct pod_spec *spec;

	if (!config_is_kubernetes(config))
		return 0;
	if (kube_curl_check(err) != 0 || pod_policy_check(config, err) != 0 ||
		pod_spec_create(config, &spec, err) != 0)
		return -1;
	pod_spec_free(spec);
	if (kube_config_load(config, &cluster, err) != 0)
		return -1;
	kube_config_free(cluster);
	return 0;
}
