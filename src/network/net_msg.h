/*
 * net_msg.h - netlink messages: built one behind the other, sent at once, every answer read.
 *
 * The kernel does what a message asks before send(2) returns, so nothing here waits.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_NETWORK_NET_MSG_H
#define ORCHARD_NETWORK_NET_MSG_H

#include "base/cleanup.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_MSG_BYTES = 64 * 1024 };

struct net_msg {
	size_t len;
	size_t head; /* where the last message begins */
	uint32_t seq;
	bool full; /* something did not fit; sending fails */
	char data[NET_MSG_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
};

void net_msg_init(struct net_msg *m);
/* Begins a message with the fixed part of its family. */
void net_msg_begin(struct net_msg *m, unsigned type, unsigned flags, const void *fixed, size_t size);
/* Attributes of the last message. */
void net_msg_put(struct net_msg *m, unsigned type, const void *data, size_t len);
void net_msg_put_u32(struct net_msg *m, unsigned type, uint32_t value);
void net_msg_put_text(struct net_msg *m, unsigned type, const char *text);
/* Bytes without a header of their own, as some nests begin with. */
void net_msg_put_raw(struct net_msg *m, const void *data, size_t len);
size_t net_msg_nest(struct net_msg *m, unsigned type);
void net_msg_nest_end(struct net_msg *m, size_t nest);

/* The last message must carry NLM_F_ACK. 0, or the errno of the first one that failed. */
int net_msg_send(int fd, struct net_msg *m) MUSTCHECK;

/* Asks for all objects of a kind; call() gets each one. 0 or errno. */
/* Not const: the kernel's macros that look into a message would drop it. */
typedef void net_msg_each_f(struct nlmsghdr *message, void *arg);
int net_msg_dump(int fd, struct net_msg *m, net_msg_each_f *call, void *arg) MUSTCHECK;

#endif
