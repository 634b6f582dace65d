/* orders.c - the line, those who wait, and every end of an order. */
/* SPDX-License-Identifier: MIT */
#include "controller/order.h"

#include "backend/agent_client.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/claim.h"
#include "controller/ground.h"
#include "controller/pods.h"
#include "controller/removal.h"
#include "spawn/destroyed.h"
#include "spawn/peer.h"
#include "spawn/request.h"

#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAUSE_FIRST_MS = 100, PAUSE_LAST_MS = 10000, NEWS_MS = 200 };

static void
line_up(struct order *order)
{
	order->phase = ORDER_QUEUED;
	turns_join(order->control->turns, &order->turn, order->spec.line, order);
}

static void
on_time(evutil_socket_t fd, short what, void *arg)
{
	struct order *order = arg;
	struct control *c = order->control;

	(void)fd;
	(void)what;
	if (order->phase == ORDER_PAUSED) {
		line_up(order);
		orders_start(c);
	} else {
		order_on_time(order);
	}
}

void
order_timer_set(struct order *order, int64_t ms)
{
	struct timeval tv = clock_tv(ms > 0 ? ms : 0);

	event_add(order->timer, &tv);
}

static void
tell_one(struct order *order, const struct waiter *waiter)
{
	struct spawn_reply reply;

	spawn_reply_fill(&reply, SPAWN_PROGRESS, waiter->seq, NULL);
	reply.wait = order->wait;
	memcpy(reply.message, order->words, sizeof reply.message);
	peers_send(order->control->peers, waiter->peer, &reply, sizeof reply);
}

static void
on_news(evutil_socket_t fd, short what, void *arg)
{
	struct order *order = arg;
	const struct waiter *waiter;

	(void)fd;
	(void)what;
	STAILQ_FOREACH(waiter, &order->waiters, link)
	{
		tell_one(order, waiter);
	}
}

void
order_tell(struct order *order, const char *words, enum spawn_wait wait)
{
	struct timeval tv = clock_tv(NEWS_MS);

	if (order->wait == wait && strcmp(order->words, words) == 0)
		return;
	order->wait = wait;
	snprintf(order->words, sizeof order->words, "%s", words);
	if (!event_pending(order->news, EV_TIMEOUT, NULL))
		event_add(order->news, &tv);
}

void
order_free(struct order *order)
{
	struct control *c = order->control;

	if (order->call != NULL)
		kube_call_cancel(order->call);
	if (order->probe != NULL)
		agent_call_cancel(order->probe);
	agent_client_forget(c->agents, order->spec.uid);
	event_free(order->timer);
	event_free(order->news);
	turns_leave(c->turns, &order->turn);
	if (order->phase == ORDER_MAKING)
		c->places++;
	id_map_remove(c->orders, order->spec.uid);
	explicit_bzero(order->spec.token, sizeof order->spec.token);
	free(order);
}

void
order_end(struct order *order, const struct err *why, const char *other_uid)
{
	struct control *c = order->control;

	log_write(LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = order->spec.id }, "could not be made: %s",
		why->msg);
	waiters_refuse(c, &order->waiters, why, other_uid);
	order_free(order);
	orders_start(c);
}

void
order_fail(struct order *order, enum err_code code, const char *fmt, ...)
{
	struct err err = { .code = code };
	va_list args;

	va_start(args, fmt);
	vsnprintf(err.msg, sizeof err.msg, fmt, args);
	va_end(args);
	order_end(order, &err, NULL);
}

void
order_pause(struct order *order, const struct err *why, int64_t retry_after_ms)
{
	struct control *c = order->control;

	order_tell(order, why->msg, SPAWN_WAIT_WORK);
	order->phase = ORDER_PAUSED;
	c->places++;
	order_timer_set(order, control_pause_ms(order->pause_ms, retry_after_ms));
	order->pause_ms = order->pause_ms * 2 < PAUSE_LAST_MS ? order->pause_ms * 2 : PAUSE_LAST_MS;
	orders_start(c);
}

void
orders_tell_place(void *owner, uint32_t place, void *arg)
{
	char words[TURNS_WORDS_SIZE];

	(void)arg;
	turns_words(place, words);
	order_tell(owner, words, SPAWN_WAIT_WORK);
}

static void
start(struct order *order)
{
	struct control *c = order->control;

	if (order->turn.told != 0)
		order_tell(order, "its pod is being made", SPAWN_WAIT_WORK);
	turns_take(c->turns, &order->turn);
	c->places--;
	order->phase = ORDER_MAKING;
	order_make(order);
}

void
orders_start(struct control *c)
{
	struct turn *turn;

	if (c->starting || !c->synced || !ground_stands(c->ground) || !claim_holds(c->claim))
		return;
	c->starting = true; /* those that end at once come here again */
	while (c->places > 0 && (turn = turns_next(c->turns)) != NULL)
		start(turn->owner);
	c->starting = false;
}

void
orders_refuse(struct control *c, const struct err *why)
{
	struct turn *turn;

	while ((turn = turns_next(c->turns)) != NULL) {
		struct order *order = turn->owner;

		waiters_refuse(c, &order->waiters, why, NULL);
		order_free(order);
	}
}

void
orders_free_all(struct control *c)
{
	AUTO_FREE void **orders = id_map_all(c->orders);
	struct waiter *waiter;

	for (size_t i = 0; orders[i] != NULL; i++) {
		struct order *order = orders[i];

		while ((waiter = STAILQ_FIRST(&order->waiters)) != NULL) {
			STAILQ_REMOVE_HEAD(&order->waiters, link);
			free(waiter);
		}
		order_free(order);
	}
}

/* --- a request --- */

/* What can be said of it at once; ret_other is the uid of whoever has the id. */
static int
admit(struct control *c, const struct spawn_create *spec, const char **ret_other, struct err *err)
{
	const struct pod *pod = id_map_find(c->pods, spec->id);
	const struct err *problem = claim_problem(c->claim);

	*ret_other = NULL;
	if (destroyed_has(c->destroyed, spec->uid) || id_map_find(c->removals, spec->uid) != NULL)
		return err_set(err, ERR_DELETED, "sandbox %s was deleted before this came", spec->id);
	if (pod != NULL && strcmp(pod->status.uid, spec->uid) != 0) {
		*ret_other = pod->status.uid;
		return err_set(err, ERR_EXISTS, "sandbox %s is there already, as another one", spec->id);
	}
	if (pod != NULL && (pod->status.phase == POD_FAILED || pod->status.phase == POD_GOING))
		return err_set(err, ERR_CONFLICT, "%s", pod->status.words);
	if (problem == NULL)
		problem = ground_refusal(c->ground);
	if (problem != NULL)
		*err = *problem;
	return problem != NULL ? -1 : 0;
}

static struct order *
order_new(struct control *c, const struct spawn_create *spec, const char *env)
{
	struct order *order = alloc_zero(1, sizeof *order + spec->env_len);

	order->control = c;
	order->spec = *spec;
	memcpy(order->env, env, spec->env_len);
	order->pause_ms = PAUSE_FIRST_MS;
	order->timer = must_alloc(event_new(c->base, -1, 0, on_time, order));
	order->news = must_alloc(event_new(c->base, -1, 0, on_news, order));
	STAILQ_INIT(&order->waiters);
	id_map_add(c->orders, order->spec.uid, order);
	return order;
}

void
orders_create(struct control *c, const struct spawn_create *spec, const char *env, uint64_t peer, uint64_t seq)
{
	struct order *order = id_map_find(c->orders, spec->uid);
	struct waiters waiters = STAILQ_HEAD_INITIALIZER(waiters);
	const char *other;
	struct err err;

	waiters_add(&waiters, peer, seq);
	if (order == NULL && admit(c, spec, &other, &err) != 0) {
		waiters_refuse(c, &waiters, &err, other);
		return;
	}
	if (order != NULL && order->doomed) {
		err_set(&err, ERR_DELETED, "sandbox %s is being deleted", spec->id);
		waiters_refuse(c, &waiters, &err, NULL);
		return;
	}
	if (order != NULL && order->words[0] != '\0')
		tell_one(order, STAILQ_FIRST(&waiters));
	if (order != NULL) {
		STAILQ_CONCAT(&order->waiters, &waiters);
		return;
	}
	order = order_new(c, spec, env);
	STAILQ_CONCAT(&order->waiters, &waiters);
	line_up(order);
	orders_start(c);
}

bool
order_abandon(struct order *order, char ret_pod_uid[ORDER_POD_UID_SIZE], bool *ret_made)
{
	struct control *c = order->control;
	struct err err;

	err_set(&err, ERR_DELETED, "sandbox %s was deleted while it was being made", order->spec.id);
	waiters_refuse(c, &order->waiters, &err, NULL);
	if (order->posting) {
		order->doomed = true;
		return false;
	}
	memcpy(ret_pod_uid, order->pod_uid, sizeof order->pod_uid);
	*ret_made = order->pod_uid[0] != '\0' || order->posted;
	order_free(order);
	return true;
}
