/*
 * net_check.c - whether what net_up made still stands: others rule this host, too. Changes nothing.
 *
 * A firewall that is loaded anew, "nft flush ruleset" or "sysctl --system" take rules, routes
 * and settings away without a word. Our rules are known by their number: nobody but us writes
 * into our tables, what happens to them is that they vanish.
 */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "base/file.h"
#include "conf/config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

struct count {
	const char *table;
	unsigned rules;
};

static bool
is_of_table(const struct nlmsghdr *message, const char *table)
{
	size_t at = NLMSG_LENGTH(sizeof(struct nfgenmsg)), size = strlen(table) + 1;

	while (at + NLA_HDRLEN <= message->nlmsg_len) {
		struct nlattr attribute;

		memcpy(&attribute, (const char *)message + at, sizeof attribute);
		if (attribute.nla_len < NLA_HDRLEN || at + attribute.nla_len > message->nlmsg_len)
			return false;
		if ((attribute.nla_type & NLA_TYPE_MASK) == NFTA_RULE_TABLE)
			return attribute.nla_len == NLA_HDRLEN + size &&
				memcmp((const char *)message + at + NLA_HDRLEN, table, size) == 0;
		at += NLA_ALIGN(attribute.nla_len);
	}
	return false;
}

static void
on_rule(struct nlmsghdr *message, void *arg)
{
	struct count *count = arg;

	if (message->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE) &&
		is_of_table(message, count->table))
		count->rules++;
}

static int
count_rules(const struct net *net, int ns, uint8_t family, struct count *count, struct err *err)
{
	struct nfgenmsg head = { .nfgen_family = family, .version = NFNETLINK_V0 };
	AUTO_FD fd = -1;
	struct net_msg m;
	int failure;

	if (net_space_socket(net, ns, NETLINK_NETFILTER, &fd, err) != 0)
		return -1;
	net_msg_init(&m);
	net_msg_begin(&m, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE, NLM_F_DUMP, &head, sizeof head);
	net_msg_put_text(&m, NFTA_RULE_TABLE, count->table);
	failure = net_msg_dump(fd, &m, on_rule, count);
	return failure == 0 ? 0 : err_set_errno(err, failure, "look at the rules of %s", count->table);
}

static int
check_tables(const struct net *net, struct err *err)
{
	struct count gate = { .table = "orchard" }, host = { .table = net->device };

	if (count_rules(net, net->gate_ns, NFPROTO_INET, &gate, err) != 0)
		return -1;
	if (gate.rules != net_table_rules())
		return err_set(
			err, ERR_CONFLICT, "the gateway has %u of its %u rules", gate.rules, net_table_rules());
	if (!net->config->network_host_setup)
		return 0;
	if (count_rules(net, net->host_ns, NFPROTO_IPV4, &host, err) != 0)
		return -1;
	if (host.rules != net_table_host_rules())
		return err_set(err, ERR_CONFLICT, "the host has %u of the %u rules of our table %s", host.rules,
			net_table_host_rules(), net->device);
	return 0;
}

static int
check_forwarding(const struct net *net, struct err *err)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	if (!net->config->network_host_setup)
		return 0;
	if (file_read_at(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", 16, &text, &len, err) != 0)
		return -1;
	return text[0] == '1' ? 0 : err_set(err, ERR_CONFLICT, "IPv4 forwarding of this host is off");
}

int
net_check(const struct net *net, struct err *err)
{
	if (check_tables(net, err) != 0 || check_forwarding(net, err) != 0)
		return -1;
	return net_uplink_check(net, err);
}
