/* net_host.c - which addresses and routes the host has; read, never changed. */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "conf/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

struct look {
	unsigned uplink; /* ours: left out */
	struct ip_range subnet;
	uint32_t *addresses;
	size_t count;
	bool routed; /* to the subnet, over the uplink */
	bool clash;
	struct ip_range with;
	unsigned clash_index;
};

/* The value of a 32-bit attribute; false when it is missing. */
static bool
attribute_u32(struct rtattr *attribute, size_t len, unsigned type, uint32_t *ret)
{
	for (; RTA_OK(attribute, len); attribute = RTA_NEXT(attribute, len)) {
		if (attribute->rta_type != type || RTA_PAYLOAD(attribute) < sizeof *ret)
			continue;
		memcpy(ret, RTA_DATA(attribute), sizeof *ret);
		return true;
	}
	return false;
}

static void
note_clash(struct look *look, const struct ip_range *with, unsigned index)
{
	if (look->clash || index == look->uplink || !ip_range_overlaps(with, &look->subnet))
		return;
	look->clash = true;
	look->with = *with;
	look->clash_index = index;
}

static void
on_address(struct nlmsghdr *message, void *arg)
{
	struct ifaddrmsg *head = NLMSG_DATA(message);
	struct look *look = arg;
	struct ip_range self = { .prefix = 32 };
	uint32_t value;

	if (message->nlmsg_type != RTM_NEWADDR || message->nlmsg_len < NLMSG_LENGTH(sizeof *head) ||
		!attribute_u32(IFA_RTA(head), IFA_PAYLOAD(message), IFA_LOCAL, &value))
		return;
	self.address = ntohl(value);
	note_clash(look, &self, head->ifa_index);
	if (head->ifa_index == look->uplink)
		return;
	look->addresses = must_alloc(realloc(look->addresses, (look->count + 1) * sizeof *look->addresses));
	look->addresses[look->count++] = self.address;
}

/* A default route takes what no other one wants, so it is in nobody's way. */
static void
on_route(struct nlmsghdr *message, void *arg)
{
	struct rtmsg *head = NLMSG_DATA(message);
	struct look *look = arg;
	uint32_t value = 0, index = 0;
	struct ip_range to;

	if (message->nlmsg_type != RTM_NEWROUTE || message->nlmsg_len < NLMSG_LENGTH(sizeof *head) ||
		head->rtm_dst_len == 0 || head->rtm_dst_len > 32 || head->rtm_table == RT_TABLE_LOCAL ||
		!attribute_u32(RTM_RTA(head), RTM_PAYLOAD(message), RTA_DST, &value))
		return;
	(void)attribute_u32(RTM_RTA(head), RTM_PAYLOAD(message), RTA_OIF, &index);
	to = (struct ip_range){ ntohl(value), head->rtm_dst_len, 0 };
	if (index == look->uplink && to.address == look->subnet.address && to.prefix == look->subnet.prefix)
		look->routed = true;
	note_clash(look, &to, index);
}

static int
look_at(const struct net *net, struct look *look, unsigned what, struct err *err)
{
	struct net_msg m;
	AUTO_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct ifaddrmsg address = { .ifa_family = AF_INET };
	struct rtmsg route = { .rtm_family = AF_INET };
	int failure;

	if (fd < 0)
		return err_set_errno(err, errno, "netlink");
	look->uplink = if_nametoindex(net->device);
	look->subnet = net->subnet;
	net_msg_init(&m);
	if (what == RTM_GETADDR)
		net_msg_begin(&m, what, NLM_F_DUMP, &address, sizeof address);
	else
		net_msg_begin(&m, what, NLM_F_DUMP, &route, sizeof route);
	failure = net_msg_dump(fd, &m, what == RTM_GETADDR ? on_address : on_route, look);
	return failure == 0 ? 0 : err_set_errno(err, failure, "look at the host's network");
}

int
net_host_addresses(const struct net *net, uint32_t **ret_addresses, size_t *ret_count, struct err *err)
{
	struct look look = { 0 };

	if (look_at(net, &look, RTM_GETADDR, err) != 0) {
		free(look.addresses);
		return -1;
	}
	*ret_addresses = look.addresses;
	*ret_count = look.count;
	return 0;
}

int
net_host_routes(const struct net *net, bool *ret_routes, struct err *err)
{
	struct look look = { 0 };

	if (look_at(net, &look, RTM_GETROUTE, err) != 0)
		return -1;
	*ret_routes = look.uplink != 0 && look.routed;
	return 0;
}

int
net_host_check(const struct net *net, struct err *err)
{
	struct look look = { 0 };
	char text[IP_RANGE_TEXT_SIZE], name[IF_NAMESIZE] = "?";
	int rc = look_at(net, &look, RTM_GETADDR, err);

	if (rc == 0)
		rc = look_at(net, &look, RTM_GETROUTE, err);
	free(look.addresses);
	if (rc != 0 || !look.clash)
		return rc;
	ip_range_text(&look.with, text);
	(void)!if_indextoname(look.clash_index, name);
	return err_set(err, ERR_CONFLICT,
		"network_subnet %s is in use on this host (%s on %s); choose a range that is free",
		net->config->network_subnet, text, name);
}

int
net_watch_host(int *ret_fd, struct err *err)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_IFADDR };
	AUTO_FD fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
		return err_set_errno(err, errno, "watch the host's addresses");
	*ret_fd = STEAL_FD(fd);
	return 0;
}
