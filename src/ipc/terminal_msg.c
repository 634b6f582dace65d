/* terminal_msg.c - packets with a descriptor; what does not look like one of ours is dropped. */
/* SPDX-License-Identifier: MIT */
#include "ipc/terminal_msg.h"

#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

/* The default holds some hundred offers, and a reconnecting crowd is more. */
enum { CHANNEL_BYTES = 4 * 1024 * 1024 };

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int
terminal_channel_open(int ret_fds[2], struct err *err)
{
	int size = CHANNEL_BYTES;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fds) < 0)
		return err_set_errno(err, errno, "no channel between workers and gateway");
	/* Without the right to force it, what the kernel grants has to do. */
	if (setsockopt(ret_fds[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
		(void)!setsockopt(ret_fds[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	return 0;
}

int
terminal_offer_send(int channel, const struct terminal_offer *offer, const void *early, int fd, struct err *err)
{
	union control control = { .bytes = { 0 } };
	struct iovec parts[2] = {
		{ .iov_base = (void *)(uintptr_t)offer, .iov_len = sizeof *offer },
		{ .iov_base = (void *)(uintptr_t)early, .iov_len = offer->early_len },
	};
	struct msghdr msg = { .msg_iov = parts,
		.msg_iovlen = offer->early_len > 0 ? 2 : 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
	ssize_t n;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	do {
		n = sendmsg(channel, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	/* ETOOMANYREFS: so many descriptors are under way that the kernel takes no more. */
	if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS)
		return err_set(err, ERR_BUSY, "too many terminals are being opened; try again");
	return err_set_errno(err, errno, "the gateway cannot be reached");
}

static int
take_descriptor(struct msghdr *msg)
{
	int fd = -1;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(msg); header != NULL; header = CMSG_NXTHDR(msg, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
			header->cmsg_len == CMSG_LEN(sizeof fd))
			memcpy(&fd, CMSG_DATA(header), sizeof fd);
	return fd;
}

#define ENDS(field) (memchr(field, '\0', sizeof field) != NULL)

static bool
offer_is_whole(const struct terminal_offer *offer, size_t len)
{
	return len >= sizeof *offer && offer->version == TERMINAL_MSG_VERSION &&
		offer->early_len == len - sizeof *offer && ENDS(offer->sandbox_id) && ENDS(offer->sandbox_uid) &&
		ENDS(offer->tenant) && ENDS(offer->endpoint) && ENDS(offer->token) && ENDS(offer->session) &&
		ENDS(offer->request_id) && ENDS(offer->websocket_key) && ENDS(offer->protocol);
}

int
terminal_offer_take(int channel, struct terminal_offer *ret_offer, void *early, int *ret_fd, struct err *err)
{
	union control control;
	struct iovec parts[2] = {
		{ .iov_base = ret_offer, .iov_len = sizeof *ret_offer },
		{ .iov_base = early, .iov_len = TERMINAL_EARLY_MAX },
	};
	struct msghdr msg = { .msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = control.bytes,
		.msg_controllen = sizeof control.bytes };
	ssize_t n;
	int fd;

	do {
		n = recvmsg(channel, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return err_set_errno(err, errno, "the channel to the workers is broken");
	fd = take_descriptor(&msg);
	if (fd >= 0 && (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 && offer_is_whole(ret_offer, (size_t)n)) {
		*ret_fd = fd;
		return 1;
	}
	if (fd >= 0)
		close(fd);
	return err_set(err, n == 0 ? ERR_CLOSED : ERR_INVALID,
		n == 0 ? "the channel to the workers has ended" : "a worker sent what is no offer");
}

/* What is left unread makes the kernel send a reset, which can overtake the answer. */
static void
discard_input(int fd)
{
	char piece[4096];
	int left = TERMINAL_EARLY_MAX / (int)sizeof piece;

	while (left-- > 0 && recv(fd, piece, sizeof piece, MSG_DONTWAIT) > 0)
		;
}

void
terminal_refuse(int fd, const char *request_id, const char *detail)
{
	char body[512], answer[1024];
	int body_len = snprintf(body, sizeof body,
		"{\"detail\":\"%s\",\"code\":\"unavailable\",\"request_id\":\"%s\"}", detail, request_id);
	int len = snprintf(answer, sizeof answer,
		"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
		"Retry-After: 1\r\nX-Request-ID: %s\r\nConnection: close\r\n\r\n%s",
		body_len, request_id, body);

	(void)!send(fd, answer, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	discard_input(fd);
	close(fd);
}
