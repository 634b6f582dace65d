/*
 * net_keeper.c - brings the gateway up once, follows the host's addresses, takes it down.
 *
 * The dispatcher waits for the child that does it: some milliseconds of kernel work,
 * once, and again when the host's addresses change.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/net_keeper.h"

#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "spawner/box.h"
#include "spawner/pool/child.h"
#include "spawner/pool/pool.h"
#include "spawner/site.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>

struct up_order {
	const struct net *net;
	struct net_member *members;
	size_t count;
};

static int
work_up(void *arg, struct err *err)
{
	const struct up_order *order = arg;

	return net_up(order->net, order->members, order->count, err);
}

static int
work_down(void *arg, struct err *err)
{
	return net_down(arg, err);
}

static int
work_follow(void *arg, struct err *err)
{
	return net_follow_host(arg, err);
}

/* Only the news that there is news is wanted; what changed is read anew. */
static void
on_changed(evutil_socket_t fd, short what, void *arg)
{
	struct net_keeper *keeper = arg;
	char news[4096];
	struct err err;

	(void)what;
	while (recv(fd, news, sizeof news, MSG_DONTWAIT) > 0)
		;
	if (keeper->up && child_run(keeper->site, work_follow, &keeper->site->net, &err) != 0)
		log_error("the gateway does not know all addresses of this host: %s", err.msg);
}

static int
start_watch(struct net_keeper *keeper, struct err *err)
{
	if (keeper->changed != NULL)
		return 0;
	if (net_watch_host(&keeper->watch_fd, err) != 0)
		return -1;
	keeper->changed = event_new(keeper->base, keeper->watch_fd, EV_READ | EV_PERSIST, on_changed, keeper);
	if (keeper->changed == NULL || event_add(keeper->changed, NULL) != 0)
		abort();
	return 0;
}

static void
collect_members(const struct net_keeper *keeper, struct up_order *order)
{
	const struct box *box;

	order->members = must_alloc(calloc(boxes_count(keeper->boxes) + 1, sizeof *order->members));
	LIST_FOREACH(box, boxes_all(keeper->boxes), link)
	{
		if (box->net.address == 0 || (box->phase != BOX_LIVE && box->phase != BOX_MAKING))
			continue;
		order->members[order->count++] = (struct net_member){ box->phase == BOX_LIVE ? box->pid : 0,
			box->net };
	}
}

void
net_keeper_open(struct net_keeper *keeper, struct event_base *base, struct site *site, struct boxes *boxes)
{
	*keeper = (struct net_keeper){ .base = base, .site = site, .boxes = boxes, .watch_fd = -1 };
}

/* The watch comes first, so that no change falls between looking and watching. */
int
net_keeper_need(struct net_keeper *keeper, struct err *err)
{
	struct net *net = &keeper->site->net;
	struct up_order order = { .net = net };

	if (keeper->up)
		return 0;
	if (net->gate_ns < 0)
		return err_set(err, ERR_UNSUPPORTED, "%s", net->problem);
	if (start_watch(keeper, err) != 0)
		return -1;
	collect_members(keeper, &order);
	keeper->up = child_run(keeper->site, work_up, &order, err) == 0;
	free(order.members);
	net->kept = net->kept || keeper->up;
	return keeper->up ? 0 : err_prefix(err, "no network for sandboxes");
}

void
net_keeper_restore(struct net_keeper *keeper)
{
	const struct box *box;
	bool by_default = keeper->site->net.gate_ns >= 0 && !keeper->site->config->block_network_default;
	bool needed = keeper->site->net.kept || by_default;
	struct err err;

	LIST_FOREACH(box, boxes_all(keeper->boxes), link)
	needed = needed || box->net.address != 0;
	if (needed && net_keeper_need(keeper, &err) != 0)
		log_error("%s", err.msg);
}

/* All that lives keeps its wire and its connections: only what is missing comes anew, and the rules in one step. */
static void
mend(struct net_keeper *keeper)
{
	struct err err;

	keeper->up = false;
	keeper->damaged = net_keeper_need(keeper, &err) != 0;
	if (keeper->damaged)
		log_error("%s; tried again later", err.msg);
}

static void
on_checked(const struct pool_answer *answer, void *arg)
{
	struct net_keeper *keeper = arg;

	keeper->checking = false;
	if (answer->why == NULL || answer->lost || !keeper->up)
		return;
	log_warn("somebody has changed the network of sandboxes, it is made right again: %s", answer->why->msg);
	mend(keeper);
}

void
net_keeper_check(struct net_keeper *keeper, struct pool *pool)
{
	if (keeper->damaged && !keeper->up)
		mend(keeper);
	if (!keeper->up || keeper->checking)
		return;
	keeper->checking = true;
	pool_check_net(pool, on_checked, keeper);
}

void
net_keeper_close(struct net_keeper *keeper)
{
	struct err err;

	if (keeper->changed != NULL) {
		event_free(keeper->changed);
		close(keeper->watch_fd);
	}
	if (keeper->up && boxes_count(keeper->boxes) == 0 &&
		child_run(keeper->site, work_down, &keeper->site->net, &err) != 0)
		log_warn("the network of sandboxes could not be taken down: %s", err.msg);
}
