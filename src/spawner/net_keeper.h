/*
 * net_keeper.h - the gateway as the dispatcher sees it: there when it is needed, true to the host, gone at the end.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_NET_KEEPER_H
#define ORCHARD_SPAWNER_NET_KEEPER_H

#include "base/cleanup.h"

#include <stdbool.h>

struct boxes;
struct err;
struct event;
struct event_base;
struct pool;
struct site;

struct net_keeper {
	struct event_base *base;
	struct site *site;
	struct boxes *boxes;
	bool up;
	bool damaged; /* was up, and could not be made right since */
	bool checking;
	int watch_fd;
	struct event *changed;
};

void net_keeper_open(struct net_keeper *keeper, struct event_base *base, struct site *site, struct boxes *boxes);
/* Before the first sandbox with a network is made. Tries again after a failure. */
int net_keeper_need(struct net_keeper *keeper, struct err *err) MUSTCHECK;
/* After a start, when it is known who lives: what an earlier gateway had is made right. Where a network is the
 * default, what is wrong with it shows at once. */
void net_keeper_restore(struct net_keeper *keeper);
/* Now and then: has a helper look whether it still stands, and makes it right where it does not. */
void net_keeper_check(struct net_keeper *keeper, struct pool *pool);
/* Without a sandbox the host gets back what it lent. */
void net_keeper_close(struct net_keeper *keeper);

#endif
