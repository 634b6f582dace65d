/* enter_msg.c - one packet: which descriptors come, the words, and the descriptors beside them. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/enter_msg.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	char space[CMSG_SPACE(sizeof(int) * ENTER_MSG_FDS)];
	struct cmsghdr align;
};

bool
enter_msg_send(int channel, const void *words, size_t len, const int *fds, size_t count)
{
	union control control = { 0 };
	uint32_t which = 0;
	struct iovec iov[] = { { &which, sizeof which }, { (void *)(uintptr_t)words, len } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = &control };
	int sent[ENTER_MSG_FDS];
	size_t n = 0;
	struct cmsghdr *head;

	for (size_t i = 0; i < count; i++) {
		if (fds[i] < 0)
			continue;
		which |= 1U << i;
		sent[n++] = fds[i];
	}
	if (n > 0) {
		msg.msg_controllen = CMSG_SPACE(n * sizeof *sent);
		head = CMSG_FIRSTHDR(&msg);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(n * sizeof *sent);
		memcpy(CMSG_DATA(head), sent, n * sizeof *sent);
	} else {
		msg.msg_control = NULL;
	}
	return sendmsg(channel, &msg, MSG_NOSIGNAL) == (ssize_t)(sizeof which + len);
}

/* Gives each its place; false when there are more or fewer than was said. */
static bool
spread(const struct cmsghdr *head, uint32_t which, int *ret_fds, size_t count)
{
	size_t came = 0, used = 0;
	int fds[ENTER_MSG_FDS];

	if (head != NULL && head->cmsg_type == SCM_RIGHTS)
		came = (head->cmsg_len - CMSG_LEN(0)) / sizeof *fds;
	if (came > ENTER_MSG_FDS)
		return false;
	if (came > 0)
		memcpy(fds, CMSG_DATA(head), came * sizeof *fds);
	for (size_t i = 0; i < count; i++) {
		ret_fds[i] = -1;
		if ((which >> i & 1) == 0)
			continue;
		if (used == came)
			return false;
		ret_fds[i] = fds[used++];
	}
	return used == came;
}

bool
enter_msg_receive(int channel, void *words, size_t len, int *ret_fds, size_t count)
{
	union control control;
	uint32_t which = 0;
	struct iovec iov[] = { { &which, sizeof which }, { words, len } };
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof control
	};
	ssize_t n;

	do
		n = recvmsg(channel, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)(sizeof which + len) && (msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0 &&
		spread(CMSG_FIRSTHDR(&msg), which, ret_fds, count);
}
