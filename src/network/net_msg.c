/* net_msg.c - netlink messages, by hand: the few that are needed here do not ask for a library. */
/* SPDX-License-Identifier: MIT */
#include "network/net_msg.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { ANSWER_BYTES = 16 * 1024 };

void
net_msg_init(struct net_msg *m)
{
	m->len = m->head = 0;
	m->seq = 0;
	m->full = false;
}

static struct nlmsghdr *
last_message(struct net_msg *m)
{
	return (struct nlmsghdr *)(void *)(m->data + m->head);
}

/* Room for len bytes at the end, zeroed up to the next boundary; NULL when there is none. */
static void *
reserve(struct net_msg *m, size_t len)
{
	char *at = m->data + m->len;

	if (m->full || NLMSG_ALIGN(len) > sizeof m->data - m->len) {
		m->full = true;
		return NULL;
	}
	memset(at, 0, NLMSG_ALIGN(len));
	m->len += NLMSG_ALIGN(len);
	return at;
}

static void
measure(struct net_msg *m)
{
	if (!m->full)
		last_message(m)->nlmsg_len = (uint32_t)(m->len - m->head);
}

void
net_msg_begin(struct net_msg *m, unsigned type, unsigned flags, const void *fixed, size_t size)
{
	struct nlmsghdr *head;
	size_t at = m->len;

	head = reserve(m, NLMSG_LENGTH(size));
	if (head == NULL)
		return;
	m->head = at;
	head->nlmsg_type = (uint16_t)type;
	head->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	head->nlmsg_seq = ++m->seq;
	memcpy(NLMSG_DATA(head), fixed, size);
	measure(m);
}

void
net_msg_put_raw(struct net_msg *m, const void *data, size_t len)
{
	void *at = reserve(m, len);

	if (at != NULL && len > 0)
		memcpy(at, data, len);
	measure(m);
}

void
net_msg_put(struct net_msg *m, unsigned type, const void *data, size_t len)
{
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = (uint16_t)type };
	char *at = reserve(m, NLA_HDRLEN + len);

	if (at != NULL) {
		memcpy(at, &attribute, sizeof attribute);
		memcpy(at + NLA_HDRLEN, data, len);
	}
	measure(m);
}

void
net_msg_put_u32(struct net_msg *m, unsigned type, uint32_t value)
{
	net_msg_put(m, type, &value, sizeof value);
}

void
net_msg_put_text(struct net_msg *m, unsigned type, const char *text)
{
	net_msg_put(m, type, text, strlen(text) + 1);
}

size_t
net_msg_nest(struct net_msg *m, unsigned type)
{
	size_t nest = m->len;

	net_msg_put(m, type | NLA_F_NESTED, "", 0);
	return nest;
}

void
net_msg_nest_end(struct net_msg *m, size_t nest)
{
	if (!m->full)
		((struct nlattr *)(void *)(m->data + nest))->nla_len = (uint16_t)(m->len - nest);
}

/* Reads what came in one piece; the first failure counts. */
static void
judge(char *answer, size_t len, bool *ret_acked, int *ret_failure)
{
	struct nlmsghdr *head = (struct nlmsghdr *)(void *)answer;

	for (; NLMSG_OK(head, len); head = NLMSG_NEXT(head, len)) {
		const struct nlmsgerr *said = NLMSG_DATA(head);

		if (head->nlmsg_type != NLMSG_ERROR || head->nlmsg_len < NLMSG_LENGTH(sizeof *said))
			continue;
		*ret_acked = true;
		if (said->error != 0 && *ret_failure == 0)
			*ret_failure = -said->error;
	}
}

int
net_msg_send(int fd, struct net_msg *m)
{
	char answer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	bool acked = false;
	int failure = 0;
	ssize_t n;

	if (m->full)
		return E2BIG;
	if (send(fd, m->data, m->len, 0) != (ssize_t)m->len)
		return errno;
	for (;;) {
		n = recv(fd, answer, sizeof answer, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		judge(answer, (size_t)n, &acked, &failure);
	}
	if (failure == 0 && !acked)
		return n < 0 && errno != EAGAIN ? errno : EPROTO;
	return failure;
}

/* One piece of a dump; true when it was the last. */
static bool
take_piece(char *piece, size_t len, net_msg_each_f *call, void *arg, int *ret_failure)
{
	struct nlmsghdr *head = (struct nlmsghdr *)(void *)piece;

	for (; NLMSG_OK(head, len); head = NLMSG_NEXT(head, len)) {
		if (head->nlmsg_type == NLMSG_DONE)
			return true;
		if (head->nlmsg_type == NLMSG_ERROR) {
			*ret_failure = -((const struct nlmsgerr *)NLMSG_DATA(head))->error;
			return true;
		}
		call(head, arg);
	}
	return false;
}

int
net_msg_dump(int fd, struct net_msg *m, net_msg_each_f *call, void *arg)
{
	char piece[ANSWER_BYTES * 2] __attribute__((aligned(NLMSG_ALIGNTO)));
	int failure = 0;
	ssize_t n;

	if (m->full)
		return E2BIG;
	if (send(fd, m->data, m->len, 0) != (ssize_t)m->len)
		return errno;
	for (;;) {
		n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EPROTO;
		if (take_piece(piece, (size_t)n, call, arg, &failure))
			return failure;
	}
}
