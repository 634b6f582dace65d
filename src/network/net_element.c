/*
 * net_element.c - who may go where: elements of the gateway's sets, added and removed as one transaction.
 *
 * All elements of a sandbox come together and go together, so when the first is not there, none is.
 */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Keys as the sets have them: fields in network byte order, each padded to four bytes. */
struct key {
	uint32_t from, to;
	uint16_t port, padding;
};

struct change {
	struct net_msg m;
	unsigned op; /* NFT_MSG_... */
};

static void
begin(struct change *change, unsigned op)
{
	struct nfgenmsg head = { .nfgen_family = AF_UNSPEC, .res_id = htons(NFNL_SUBSYS_NFTABLES) };

	change->op = op;
	net_msg_init(&change->m);
	net_msg_begin(&change->m, NFNL_MSG_BATCH_BEGIN, 0, &head, sizeof head);
}

/* The message that a set's elements are put into, if it wants any. */
static void
begin_set(struct change *change, unsigned op, const char *set)
{
	struct nfgenmsg head = { .nfgen_family = NFPROTO_INET, .version = NFNETLINK_V0 };
	unsigned create = op == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0;

	net_msg_begin(&change->m, NFNL_SUBSYS_NFTABLES << 8 | op, NLM_F_ACK | create, &head, sizeof head);
	net_msg_put_text(&change->m, NFTA_SET_ELEM_LIST_TABLE, "orchard");
	net_msg_put_text(&change->m, NFTA_SET_ELEM_LIST_SET, set);
}

static void
put_value(struct net_msg *m, unsigned type, const void *key, size_t len)
{
	size_t nest = net_msg_nest(m, type);

	net_msg_put(m, NFTA_DATA_VALUE, key, len);
	net_msg_nest_end(m, nest);
}

/* last NULL: the set has no ranges. */
static void
put_element(struct net_msg *m, const void *first, const void *last, size_t len)
{
	size_t nest = net_msg_nest(m, NFTA_LIST_ELEM);

	put_value(m, NFTA_SET_ELEM_KEY, first, len);
	if (last != NULL)
		put_value(m, NFTA_SET_ELEM_KEY_END, last, len);
	net_msg_nest_end(m, nest);
}

bool
net_element_counts(const struct egress *egress, uint32_t i)
{
	const struct ip_dest *it = &egress->allow[i];

	if (!ip_dest_is_v4(it))
		return false;
	for (uint32_t j = 0; j < egress->count; j++) {
		const struct ip_dest *other = &egress->allow[j];

		if (j != i && other->port == it->port && ip_dest_contains(other, it) &&
			(j < i || !ip_dest_contains(it, other)))
			return false;
	}
	return true;
}

/* Ranges with a port go into one set, those without into another. */
static void
put_ranges(struct change *change, const struct net_grant *grant, bool ports)
{
	const struct egress *egress = &grant->egress;
	size_t len = ports ? sizeof(struct key) : offsetof(struct key, port), nest = 0;
	bool any = false;

	for (uint32_t i = 0; i < egress->count; i++) {
		struct key first = { htonl(grant->address), 0, htons(egress->allow[i].port), 0 }, last = first;
		struct ip_range range;

		if ((egress->allow[i].port != 0) != ports || !net_element_counts(egress, i))
			continue;
		range = ip_dest_v4(&egress->allow[i]);
		first.to = htonl(range.address);
		last.to = htonl(ip_range_last(&range));
		if (!any) {
			begin_set(change, change->op, ports ? "allow_port" : "allow");
			nest = net_msg_nest(&change->m, NFTA_SET_ELEM_LIST_ELEMENTS);
		}
		any = true;
		put_element(&change->m, &first, &last, len);
	}
	if (any)
		net_msg_nest_end(&change->m, nest);
}

static void
put_open(struct change *change, const struct net_grant *grant)
{
	uint32_t address = htonl(grant->address);
	size_t nest;

	begin_set(change, change->op, "open");
	nest = net_msg_nest(&change->m, NFTA_SET_ELEM_LIST_ELEMENTS);
	put_element(&change->m, &address, NULL, sizeof address);
	net_msg_nest_end(&change->m, nest);
}

/*
 * One socket for the life of the process, a helper or a child: who closes one waits
 * until the kernel has cleared away what was removed before, many milliseconds.
 */
static int
socket_of_process(const struct net *net, int *ret_fd, struct err *err)
{
	static int fd = -1;
	static ino_t gateway; /* that it works in */
	struct stat st;

	if (fstat(net->gate_ns, &st) != 0)
		return err_set_errno(err, errno, "the gateway's namespace");
	if (fd >= 0 && gateway != st.st_ino) {
		close(fd);
		fd = -1;
	}
	if (fd < 0 && net_space_socket(net, net->gate_ns, NETLINK_NETFILTER, &fd, err) != 0)
		return -1;
	gateway = st.st_ino;
	*ret_fd = fd;
	return 0;
}

/* 0 or errno. */
static int
commit(const struct net *net, struct change *change, struct err *err)
{
	struct nfgenmsg head = { .nfgen_family = AF_UNSPEC, .res_id = htons(NFNL_SUBSYS_NFTABLES) };
	int fd = -1;

	if (change->m.seq == 1)
		return 0;
	net_msg_begin(&change->m, NFNL_MSG_BATCH_END, 0, &head, sizeof head);
	if (socket_of_process(net, &fd, err) != 0)
		return EACCES;
	return net_msg_send(fd, &change->m);
}

static int
change_grant(const struct net *net, unsigned op, const struct net_grant *grant, struct err *err)
{
	struct change change;

	begin(&change, op);
	if (grant->egress.limited) {
		put_ranges(&change, grant, false);
		put_ranges(&change, grant, true);
	} else {
		put_open(&change, grant);
	}
	return commit(net, &change, err);
}

int
net_element_add(const struct net *net, const struct net_grant *grant, struct err *err)
{
	int failure = change_grant(net, NFT_MSG_NEWSETELEM, grant, err);

	return failure == 0 ? 0 : err_set_errno(err, failure, "let the sandbox through the gateway");
}

int
net_element_remove(const struct net *net, const struct net_grant *grant, struct err *err)
{
	int failure = change_grant(net, NFT_MSG_DELSETELEM, grant, err);

	return failure == 0 || failure == ENOENT
		? 0
		: err_set_errno(err, failure, "take the sandbox's rights at the gateway away");
}

int
net_element_set_host(const struct net *net, const uint32_t *addresses, size_t count, struct err *err)
{
	struct change change;
	size_t nest;
	int failure;

	begin(&change, NFT_MSG_NEWSETELEM);
	begin_set(&change, NFT_MSG_DELSETELEM, "host"); /* no elements: all */
	if (count > 0) {
		begin_set(&change, NFT_MSG_NEWSETELEM, "host");
		nest = net_msg_nest(&change.m, NFTA_SET_ELEM_LIST_ELEMENTS);
		for (size_t i = 0; i < count; i++) {
			uint32_t address = htonl(addresses[i]);

			put_element(&change.m, &address, NULL, sizeof address);
		}
		net_msg_nest_end(&change.m, nest);
	}
	failure = commit(net, &change, err);
	return failure == 0 ? 0 : err_set_errno(err, failure, "tell the gateway the host's addresses");
}
