/* net_link.c - messages about links, addresses, routes and neighbours. */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

/* One queue each way from the start: the kernel would make more, and wait for all processors to throw them away. */
static void
put_end(struct net_msg *m, const char *name, const uint8_t mac[NET_MAC_SIZE])
{
	static const uint8_t any[NET_MAC_SIZE];

	net_msg_put_text(m, IFLA_IFNAME, name);
	net_msg_put_u32(m, IFLA_NUM_TX_QUEUES, 1);
	net_msg_put_u32(m, IFLA_NUM_RX_QUEUES, 1);
	if (memcmp(mac, any, sizeof any) != 0)
		net_msg_put(m, IFLA_ADDRESS, mac, NET_MAC_SIZE);
}

static struct ifinfomsg
link_of(unsigned index, unsigned flags)
{
	return (struct ifinfomsg){
		.ifi_family = AF_UNSPEC, .ifi_index = (int)index, .ifi_flags = flags, .ifi_change = flags
	};
}

void
net_link_pair(struct net_msg *m, unsigned flags, const struct net_pair *pair)
{
	struct ifinfomsg near = link_of(pair->index, IFF_UP | pair->flags);
	struct ifinfomsg far = link_of(pair->peer_index, pair->flags);
	size_t info, data, peer;

	net_msg_begin(m, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | flags, &near, sizeof near);
	put_end(m, pair->name, pair->mac);
	info = net_msg_nest(m, IFLA_LINKINFO);
	net_msg_put_text(m, IFLA_INFO_KIND, "veth");
	data = net_msg_nest(m, IFLA_INFO_DATA);
	peer = net_msg_nest(m, VETH_INFO_PEER);
	net_msg_put_raw(m, &far, sizeof far);
	put_end(m, pair->peer_name, pair->peer_mac);
	net_msg_put_u32(m, IFLA_NET_NS_FD, (uint32_t)pair->peer_ns);
	net_msg_nest_end(m, peer);
	net_msg_nest_end(m, data);
	net_msg_nest_end(m, info);
}

void
net_link_up(struct net_msg *m, unsigned index)
{
	struct ifinfomsg link = link_of(index, IFF_UP);

	net_msg_begin(m, RTM_NEWLINK, 0, &link, sizeof link);
}

void
net_link_delete(struct net_msg *m, unsigned index)
{
	struct ifinfomsg link = link_of(index, 0);

	net_msg_begin(m, RTM_DELLINK, NLM_F_ACK, &link, sizeof link);
}

void
net_link_address(struct net_msg *m, unsigned index, uint32_t address)
{
	struct ifaddrmsg head = { .ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = index };

	net_msg_begin(m, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof head);
	net_msg_put_u32(m, IFA_LOCAL, htonl(address));
	net_msg_put_u32(m, IFA_ADDRESS, htonl(address));
}

void
net_link_route(struct net_msg *m, unsigned flags, unsigned index, const struct ip_range *to, uint32_t via)
{
	struct rtmsg head = { .rtm_family = AF_INET,
		.rtm_dst_len = (unsigned char)to->prefix,
		.rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = via != 0 ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
		.rtm_type = RTN_UNICAST,
		.rtm_flags = via != 0 ? RTNH_F_ONLINK : 0 };

	net_msg_begin(m, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE | flags, &head, sizeof head);
	if (to->prefix > 0)
		net_msg_put_u32(m, RTA_DST, htonl(to->address));
	if (via != 0)
		net_msg_put_u32(m, RTA_GATEWAY, htonl(via));
	net_msg_put_u32(m, RTA_OIF, index);
}

void
net_link_neighbour(struct net_msg *m, unsigned index, uint32_t address, const uint8_t mac[NET_MAC_SIZE])
{
	struct ndmsg head = { .ndm_family = AF_INET, .ndm_ifindex = (int)index, .ndm_state = NUD_PERMANENT };

	net_msg_begin(m, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof head);
	net_msg_put_u32(m, NDA_DST, htonl(address));
	net_msg_put(m, NDA_LLADDR, mac, NET_MAC_SIZE);
}

static void
take_index(struct nlmsghdr *message, void *arg)
{
	const struct ifinfomsg *link = NLMSG_DATA(message);

	if (message->nlmsg_type == RTM_NEWLINK && message->nlmsg_len >= NLMSG_LENGTH(sizeof *link))
		*(unsigned *)arg = (unsigned)link->ifi_index;
}

/* Asks for one link by name or number: a dump of one, ended by the acknowledgement. */
static unsigned
ask_link(int fd, unsigned index, const char *name)
{
	struct ifinfomsg link = link_of(index, 0);
	struct net_msg m;
	unsigned found = 0;

	net_msg_init(&m);
	net_msg_begin(&m, RTM_GETLINK, NLM_F_ACK, &link, sizeof link);
	if (name != NULL)
		net_msg_put_text(&m, IFLA_IFNAME, name);
	return net_msg_dump(fd, &m, take_index, &found) == 0 ? found : 0;
}

unsigned
net_link_find(int fd, const char *name)
{
	return ask_link(fd, 0, name);
}

bool
net_link_exists(int fd, unsigned index)
{
	return ask_link(fd, index, NULL) == index;
}
