/* net_impl.h - what the files of the network share. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_NETWORK_NET_IMPL_H
#define ORCHARD_NETWORK_NET_IMPL_H

#include "network/net.h"
#include "network/net_msg.h"

enum {
	NET_UPLINK_INDEX = 2, /* interface numbers in the gateway */
	NET_BOX_INDEX = 1000, /* and up: by the sandbox's address */
	NET_MAC_SIZE = 6
};

/* net_space.c: namespaces. Entering fails with words; the way back must not, so it ends the process. */
int net_space_enter(int ns, struct err *err) MUSTCHECK;
void net_space_leave(const struct net *net);
/* A netlink socket that works in ns, whatever namespace its user is in. */
int net_space_socket(const struct net *net, int ns, int protocol, int *ret_fd, struct err *err) MUSTCHECK;

/* net_link.c: pieces of messages about links, addresses and routes. */
static inline uint32_t
net_gate_address(const struct net *net)
{
	return net->subnet.address + 1;
}

static inline uint32_t
net_host_address(const struct net *net)
{
	return net->subnet.address + 2;
}

static inline unsigned
net_box_index(const struct net *net, uint32_t address)
{
	return NET_BOX_INDEX + (address - net->subnet.address);
}

struct net_pair {
	const char *name, *peer_name;
	unsigned index, peer_index; /* 0: any; the kernel heeds peer_index only with an index */
	unsigned flags; /* IFF_... of both; the near end goes up as well */
	uint8_t mac[NET_MAC_SIZE], peer_mac[NET_MAC_SIZE]; /* all 0: any */
	int peer_ns;
};
void net_link_pair(struct net_msg *m, unsigned flags, const struct net_pair *pair);
/* The far end can go up only when both are there. */
void net_link_up(struct net_msg *m, unsigned index);
void net_link_delete(struct net_msg *m, unsigned index);
void net_link_address(struct net_msg *m, unsigned index, uint32_t address);
/* via 0: on the link itself. */
void net_link_route(struct net_msg *m, unsigned flags, unsigned index, const struct ip_range *to, uint32_t via);
void net_link_neighbour(struct net_msg *m, unsigned index, uint32_t address, const uint8_t mac[NET_MAC_SIZE]);
/* 0 when there is none. */
unsigned net_link_find(int fd, const char *name);
bool net_link_exists(int fd, unsigned index);

/* net_table.c: the gateway's table and the host's, each replaced in one transaction. */
int net_table_load(const struct net *net, const struct net_member *members, size_t count, const uint32_t *host,
	size_t host_count, struct err *err) MUSTCHECK;
int net_table_load_host(const struct net *net, struct err *err) MUSTCHECK;
int net_table_unload_host(const struct net *net, struct err *err) MUSTCHECK;

/* How many rules each of them has. */
unsigned net_table_rules(void);
unsigned net_table_host_rules(void);

/* net_element.c: elements of the gateway's sets. */
int net_element_add(const struct net *net, const struct net_grant *grant, struct err *err) MUSTCHECK;
int net_element_remove(const struct net *net, const struct net_grant *grant, struct err *err) MUSTCHECK;
int net_element_set_host(const struct net *net, const uint32_t *addresses, size_t count, struct err *err) MUSTCHECK;
/* Whether entry i of the list says something of IPv4 that no other entry says: sets of ranges take no range twice. */
bool net_element_counts(const struct egress *egress, uint32_t i);

/* net_box.c */
int net_box_wire(const struct net *net, pid_t pid, const struct net_grant *grant, struct err *err) MUSTCHECK;

/* net_uplink.c: the wire to the host, its addresses and routes. */
int net_uplink_make(const struct net *net, struct err *err) MUSTCHECK;
/* ERR_CONFLICT with what is missing. */
int net_uplink_check(const struct net *net, struct err *err) MUSTCHECK;
int net_uplink_remove(const struct net *net, struct err *err) MUSTCHECK;

/* net_host.c: what the host has. */
/* *ret_addresses is malloc'ed. Those of the uplink are left out. */
int
net_host_addresses(const struct net *net, uint32_t **ret_addresses, size_t *ret_count, struct err *err) MUSTCHECK;
/* Whether its way to the sandboxes leads over our uplink. */
int net_host_routes(const struct net *net, bool *ret_routes, struct err *err) MUSTCHECK;
/* ERR_CONFLICT when the host uses a part of the subnet otherwise. */
int net_host_check(const struct net *net, struct err *err) MUSTCHECK;

/* net_dns.c */
void net_dns_read(struct net *net);

#endif
