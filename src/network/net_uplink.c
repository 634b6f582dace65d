/* net_uplink.c - the wire between gateway and host: addresses and routes of both ends. */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "base/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static const char gate_end[] = "uplink";

struct ends {
	const struct net *net;
	int host_fd, gate_fd;
};

static int
open_ends(const struct net *net, struct ends *ends, struct err *err)
{
	*ends = (struct ends){ .net = net, .host_fd = -1, .gate_fd = -1 };
	if (net_space_socket(net, net->host_ns, NETLINK_ROUTE, &ends->host_fd, err) != 0)
		return -1;
	return net_space_socket(net, net->gate_ns, NETLINK_ROUTE, &ends->gate_fd, err);
}

static void
close_ends(struct ends *ends)
{
	cleanup_fd(&ends->host_fd);
	cleanup_fd(&ends->gate_fd);
}

static int
delete_end(int fd, unsigned index)
{
	struct net_msg m;

	if (index == 0)
		return 0;
	net_msg_init(&m);
	net_link_delete(&m, index);
	return net_msg_send(fd, &m);
}

/* Whether it was made for the same subnet. */
static bool
has_address(const struct net *net)
{
	AUTO_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address;
	struct ifreq request = { 0 };

	memcpy(request.ifr_name, net->device, sizeof request.ifr_name);
	if (fd < 0 || ioctl(fd, SIOCGIFADDR, &request) != 0)
		return false;
	memcpy(&address, &request.ifr_addr, sizeof address);
	return ntohl(address.sin_addr.s_addr) == net_host_address(net);
}

/* One end without the other belongs to a gateway that is no more. */
static int
lay(const struct ends *ends, struct err *err)
{
	unsigned host = net_link_find(ends->host_fd, ends->net->device);
	unsigned gate = net_link_find(ends->gate_fd, gate_end);
	struct net_pair pair = { .name = gate_end,
		.peer_name = ends->net->device,
		.index = NET_UPLINK_INDEX,
		.peer_ns = ends->net->host_ns };
	struct net_msg m;
	int failure;

	if (host != 0 && gate == NET_UPLINK_INDEX && has_address(ends->net))
		return 0;
	failure = delete_end(ends->host_fd, host);
	if (failure == 0)
		failure = delete_end(ends->gate_fd, net_link_find(ends->gate_fd, gate_end));
	net_msg_init(&m);
	net_link_pair(&m, NLM_F_ACK, &pair);
	if (failure == 0)
		failure = net_msg_send(ends->gate_fd, &m);
	return failure == 0 ? 0
			    : err_set_errno(err, failure, "make the uplink %s (CAP_NET_ADMIN and veth are needed)",
				      ends->net->device);
}

static int
furnish_host(const struct ends *ends, struct err *err)
{
	const struct net *net = ends->net;
	unsigned index = net_link_find(ends->host_fd, net->device);
	struct err ignored;
	struct net_msg m;
	char path[96];
	int failure;

	snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", net->device);
	(void)!file_put_at(AT_FDCWD, path, "1", &ignored); /* missing where the kernel has no IPv6 */
	net_msg_init(&m);
	net_link_up(&m, index);
	net_link_address(&m, index, net_host_address(net));
	net_link_route(&m, NLM_F_ACK, index, &net->subnet, net_gate_address(net));
	failure = net_msg_send(ends->host_fd, &m);
	return failure == 0 ? 0 : err_set_errno(err, failure, "address and route of the uplink %s", net->device);
}

static int
furnish_gate(const struct ends *ends, struct err *err)
{
	const struct net *net = ends->net;
	struct ip_range all = { 0, 0, 0 };
	struct net_msg m;
	int failure;

	net_msg_init(&m);
	net_link_address(&m, NET_UPLINK_INDEX, net_gate_address(net));
	net_link_route(&m, NLM_F_ACK, NET_UPLINK_INDEX, &all, net_host_address(net));
	failure = net_msg_send(ends->gate_fd, &m);
	return failure == 0 ? 0 : err_set_errno(err, failure, "address and route of the gateway");
}

int
net_uplink_make(const struct net *net, struct err *err)
{
	struct ends ends;
	int rc = open_ends(net, &ends, err);

	if (rc == 0)
		rc = lay(&ends, err);
	if (rc == 0)
		rc = furnish_gate(&ends, err);
	if (rc == 0)
		rc = furnish_host(&ends, err);
	close_ends(&ends);
	return rc;
}

/* A link that is down has lost its routes. */
int
net_uplink_check(const struct net *net, struct err *err)
{
	AUTO_FD gate = -1;
	bool routes = false;

	if (net_space_socket(net, net->gate_ns, NETLINK_ROUTE, &gate, err) != 0 ||
		net_host_routes(net, &routes, err) != 0)
		return -1;
	if (!has_address(net) || net_link_find(gate, gate_end) != NET_UPLINK_INDEX)
		return err_set(err, ERR_CONFLICT, "the uplink %s is gone, or has lost its address", net->device);
	if (!routes)
		return err_set(err, ERR_CONFLICT, "the host has lost its route over %s", net->device);
	return 0;
}

int
net_uplink_remove(const struct net *net, struct err *err)
{
	struct ends ends;
	int failure = 0, rc = open_ends(net, &ends, err);

	if (rc == 0)
		failure = delete_end(ends.host_fd, net_link_find(ends.host_fd, net->device));
	close_ends(&ends);
	return failure == 0 ? rc : err_set_errno(err, failure, "remove the uplink %s", net->device);
}
