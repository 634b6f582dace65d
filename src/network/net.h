/*
 * net.h - the network of sandboxes: one gateway namespace that all of them are wired to.
 *
 *   sandbox eth0 --- box-N  gateway namespace  uplink --- orchard-XXXXXXX  host
 *
 * The gateway forwards and judges by one table whose sets say who may go where.
 * A sandbox is two ends of a wire, a route and a few elements of those sets, all
 * set by netlink; never a rule. The gateway outlives the spawner by a mount below
 * run_dir. Whatever changes into another namespace runs in a helper or a child,
 * never in the dispatcher.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_NETWORK_NET_H
#define ORCHARD_NETWORK_NET_H

#include "base/cleanup.h"
#include "base/ip_range.h"
#include "ipc/egress.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct err;

enum {
	NET_DNS_MAX = 3, /* more are ignored by resolvers */
	NET_DEVICE_SIZE = 16,
	NET_FIRST_HOST = 3 /* before: the range itself, the gateway, the host's end of the uplink */
};

struct net {
	const struct config *config;
	struct ip_range subnet;
	char device[NET_DEVICE_SIZE]; /* the host's end of the uplink; also our table's name there */
	int host_ns, gate_ns; /* gate_ns -1: no sandbox gets a network, for the reason in problem */
	int mounts_ns; /* the host's mounts: where the gateway is kept */
	bool kept; /* the gateway outlives this process: it is one of an earlier spawner, or was up once */
	uint32_t dns[NET_DNS_MAX];
	unsigned dns_count;
	char problem[512];
};

/* One sandbox's place in it. */
struct net_grant {
	uint32_t address; /* host byte order; 0: loopback only */
	struct egress egress;
};

/* A sandbox that lives, or is being made, and has, or should have, its place. */
struct net_member {
	pid_t pid; /* 0: whoever makes it wires it */
	struct net_grant grant;
};

/*
 * Finds the gateway of an earlier spawner or makes an empty namespace, which touches
 * nothing of the host. Before the caller leaves the host's mounts: net_keep_mounts().
 * What fails is told in net->problem.
 */
void net_init(struct net *net);
void net_keep_mounts(struct net *net);
void net_open(struct net *net, const struct config *config);
void net_close(struct net *net);

/* Sandboxes' addresses: from which one on, and how many. */
static inline uint32_t
net_first_address(const struct net *net)
{
	return net->subnet.address + NET_FIRST_HOST;
}
uint32_t net_capacity(const struct net *net);

/* What the sandboxes' /etc/resolv.conf says. */
void net_resolv_text(const struct net *net, char *buf, size_t size);

/*
 * In a child. Makes gateway, uplink and what the host needs right, whatever of it is
 * there, with exactly the members' grants in force; a member that has lost its wire gets a new one.
 */
int net_up(const struct net *net, const struct net_member *members, size_t count, struct err *err) MUSTCHECK;
/* In a helper or a child. Whether all of that still stands; ERR_CONFLICT with what does not. */
int net_check(const struct net *net, struct err *err) MUSTCHECK;
/* In a child. Takes everything off the host again. */
int net_down(const struct net *net, struct err *err) MUSTCHECK;
/* In a child. Tells the gateway which addresses the host has now. */
int net_follow_host(const struct net *net, struct err *err) MUSTCHECK;

/* In a helper or a child. Wires the namespace of pid, then lets it out; on failure nothing is left. */
int net_attach(const struct net *net, pid_t pid, const struct net_grant *grant, struct err *err) MUSTCHECK;
/* Takes its rights away. The wire goes with the sandbox's namespace. Nothing there is fine. */
int net_detach(const struct net *net, const struct net_grant *grant, struct err *err) MUSTCHECK;

/* A descriptor that becomes readable when the host's addresses change. */
int net_watch_host(int *ret_fd, struct err *err) MUSTCHECK;

#endif
