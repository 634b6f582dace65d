/* net_space.c - in and out of network namespaces. */
/* SPDX-License-Identifier: MIT */
#include "network/net_impl.h"

#include "base/err.h"
#include "base/log.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int
net_space_enter(int ns, struct err *err)
{
	if (setns(ns, CLONE_NEWNET) != 0)
		return err_set_errno(err, errno, "enter a network namespace");
	return 0;
}

void
net_space_leave(const struct net *net)
{
	if (setns(net->host_ns, CLONE_NEWNET) == 0)
		return;
	log_error("no way back to the host's network namespace: %s", strerror(errno));
	abort();
}

int
net_space_socket(const struct net *net, int ns, int protocol, int *ret_fd, struct err *err)
{
	if (net_space_enter(ns, err) != 0)
		return -1;
	*ret_fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	if (*ret_fd < 0)
		err_set_errno(err, errno,
			protocol == NETLINK_NETFILTER ? "netlink for nftables (the kernel needs nf_tables)"
						      : "netlink");
	net_space_leave(net);
	return *ret_fd >= 0 ? 0 : -1;
}
