/*
 * net_box.c - one sandbox's wire to the gateway.
 *
 * Neither end asks for the other's hardware address: both know it from the start.
 * So a sandbox can't claim an address by ARP, and a thousand of them don't fill the
 * kernel's one neighbour table. The gateway takes from each wire only the address
 * that it routes there.
 */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <stdio.h>

enum { BOX_END_INDEX = 2 };

static const uint8_t gate_mac[NET_MAC_SIZE] = { 0x0a, 0x58, 0, 0, 0, 1 };

struct wire {
	const struct net *net;
	uint32_t address;
	unsigned index; /* of the gateway's end */
	uint8_t mac[NET_MAC_SIZE]; /* of the sandbox's end */
	int box_ns, gate_fd, box_fd;
};

/* A sandbox has no IPv6 but on loopback; where the kernel has none at all there is nothing to switch off. */
static int
open_sockets(struct wire *wire, struct err *err)
{
	const struct net *net = wire->net;
	struct err ignored;

	if (net_space_socket(net, net->gate_ns, NETLINK_ROUTE, &wire->gate_fd, err) != 0 ||
		net_space_enter(wire->box_ns, err) != 0)
		return -1;
	(void)!file_put_at(AT_FDCWD, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1", &ignored);
	wire->box_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	net_space_leave(net);
	return wire->box_fd >= 0 ? 0 : err_set_errno(err, errno, "netlink in the sandbox");
}

static int
wire_gate(const struct wire *wire)
{
	struct net_pair pair = { .peer_name = "eth0",
		.index = wire->index,
		.peer_index = BOX_END_INDEX,
		.flags = IFF_NOARP,
		.peer_ns = wire->box_ns };
	struct ip_range self = { wire->address, 32, 0 };
	char name[IFNAMSIZ];
	struct net_msg m;

	snprintf(name, sizeof name, "box-%u", wire->index - NET_BOX_INDEX);
	pair.name = name;
	memcpy(pair.mac, gate_mac, sizeof pair.mac);
	memcpy(pair.peer_mac, wire->mac, sizeof pair.peer_mac);
	net_msg_init(&m);
	net_link_pair(&m, 0, &pair);
	net_link_neighbour(&m, wire->index, wire->address, wire->mac);
	net_link_route(&m, NLM_F_ACK, wire->index, &self, 0);
	return net_msg_send(wire->gate_fd, &m);
}

static int
wire_box(const struct wire *wire)
{
	struct ip_range all = { 0, 0, 0 };
	struct net_msg m;

	net_msg_init(&m);
	net_link_up(&m, BOX_END_INDEX);
	net_link_address(&m, BOX_END_INDEX, wire->address);
	net_link_neighbour(&m, BOX_END_INDEX, net_gate_address(wire->net), gate_mac);
	net_link_route(&m, NLM_F_ACK, BOX_END_INDEX, &all, net_gate_address(wire->net));
	return net_msg_send(wire->box_fd, &m);
}

static int
unwire(const struct wire *wire)
{
	struct net_msg m;

	net_msg_init(&m);
	net_link_delete(&m, wire->index);
	return net_msg_send(wire->gate_fd, &m);
}

/* The address is ours alone: what still has its name is the end of a sandbox whose namespace is being torn down. */
static int
lay(const struct wire *wire, struct err *err)
{
	int failure = wire_gate(wire);

	if (failure == EEXIST || failure == EBUSY) {
		(void)!unwire(wire);
		failure = wire_gate(wire);
	}
	if (failure == 0)
		failure = wire_box(wire);
	if (failure == 0)
		return 0;
	(void)!unwire(wire);
	return err_set_errno(err, failure, "wire the sandbox to the gateway (the kernel needs veth)");
}

int
net_box_wire(const struct net *net, pid_t pid, const struct net_grant *grant, struct err *err)
{
	const uint32_t a = grant->address;
	struct wire wire = { .net = net,
		.address = a,
		.index = net_box_index(net, a),
		.mac = { 0x0a, 0x58, (uint8_t)(a >> 24), (uint8_t)(a >> 16), (uint8_t)(a >> 8), (uint8_t)a },
		.gate_fd = -1,
		.box_fd = -1 };
	char path[64];
	int rc;

	snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	wire.box_ns = open(path, O_RDONLY | O_CLOEXEC);
	if (wire.box_ns < 0)
		return err_set_errno(err, errno, "network namespace of the sandbox");
	rc = open_sockets(&wire, err);
	if (rc == 0)
		rc = lay(&wire, err);
	cleanup_fd(&wire.box_fd);
	cleanup_fd(&wire.gate_fd);
	cleanup_fd(&wire.box_ns);
	return rc;
}

int
net_attach(const struct net *net, pid_t pid, const struct net_grant *grant, struct err *err)
{
	AUTO_FD fd = -1;
	struct net_msg m;

	if (net_box_wire(net, pid, grant, err) != 0)
		return -1;
	if (net_element_add(net, grant, err) == 0)
		return 0;
	if (net_space_socket(net, net->gate_ns, NETLINK_ROUTE, &fd, &(struct err){ 0 }) == 0) {
		net_msg_init(&m);
		net_link_delete(&m, net_box_index(net, grant->address));
		(void)!net_msg_send(fd, &m);
	}
	return -1;
}

int
net_detach(const struct net *net, const struct net_grant *grant, struct err *err)
{
	if (grant->address == 0 || net->gate_ns < 0)
		return 0;
	return net_element_remove(net, grant, err);
}
