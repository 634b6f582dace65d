/* peer.c - accepts, reads packets, queues answers. */
/* SPDX-License-Identifier: MIT */
#include "spawn/peer.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>

enum { PEERS_MAX = 256, READS_AT_ONCE = 32, ACCEPT_PAUSE_MS = 100, SEND_BUFFER = 1 << 20 };
#define QUEUE_MAX_BYTES ((size_t)64 << 20)

struct packet {
	STAILQ_ENTRY(packet) link;
	size_t len;
	char data[];
};

struct peer {
	LIST_ENTRY(peer) link;
	struct peers *peers;
	uint64_t number;
	int fd;
	bool watches;
	struct event *readable, *writable;
	STAILQ_HEAD(, packet) queue;
	size_t queued;
	bool dead; /* freed when its event callback is done with it */
};

struct peers {
	struct event_base *base;
	struct peers_options options;
	struct event *acceptable, *accept_again;
	LIST_HEAD(, peer) all;
	unsigned count;
	uint64_t next_number;
	char *buffer;
};

static void
peer_free(struct peer *peer)
{
	struct packet *packet;

	LIST_REMOVE(peer, link);
	peer->peers->count--;
	event_free(peer->readable);
	event_free(peer->writable);
	close(peer->fd);
	while ((packet = STAILQ_FIRST(&peer->queue)) != NULL) {
		STAILQ_REMOVE_HEAD(&peer->queue, link);
		free(packet);
	}
	free(peer);
}

/* Not freed at once: the caller may be in the middle of a message of this very peer. */
static void
peer_kill(struct peer *peer)
{
	peer->dead = true;
	peer->watches = false;
	event_del(peer->writable);
	event_active(peer->readable, EV_READ, 0);
}

static void
peer_on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct peer *peer = arg;
	struct peers *peers = peer->peers;

	(void)what;
	for (int i = 0; i < READS_AT_ONCE && !peer->dead; i++) {
		struct iovec iov = { peers->buffer, peers->options.message_max };
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			break;
		if ((msg.msg_flags & MSG_TRUNC) != 0 ||
			peers->options.on_message(peer->number, peers->buffer, (size_t)n, peers->options.arg) !=
				0) {
			log_warn("a peer on spawner.sock sent a message that is none; it is dropped");
			break;
		}
		if (i + 1 == READS_AT_ONCE)
			return;
	}
	peer_free(peer);
}

static void
peer_on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct peer *peer = arg;
	struct packet *packet;

	(void)what;
	while ((packet = STAILQ_FIRST(&peer->queue)) != NULL) {
		if (send(fd, packet->data, packet->len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
			if (errno != EAGAIN && errno != EINTR)
				peer_kill(peer);
			return;
		}
		peer->queued -= packet->len;
		STAILQ_REMOVE_HEAD(&peer->queue, link);
		free(packet);
	}
	event_del(peer->writable);
}

static void
peer_send(struct peer *peer, const void *data, size_t len)
{
	struct packet *packet;

	if (peer->dead)
		return;
	if (STAILQ_EMPTY(&peer->queue)) {
		if (send(peer->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return;
		if (errno != EAGAIN && errno != EINTR) {
			peer_kill(peer);
			return;
		}
	}
	if (peer->queued + len > QUEUE_MAX_BYTES) {
		log_warn("a peer on spawner.sock does not read its answers; it is dropped");
		peer_kill(peer);
		return;
	}
	packet = malloc(sizeof *packet + len);
	if (packet == NULL)
		abort();
	packet->len = len;
	memcpy(packet->data, data, len);
	STAILQ_INSERT_TAIL(&peer->queue, packet, link);
	peer->queued += len;
	event_add(peer->writable, NULL);
}

static struct peer *
find(struct peers *peers, uint64_t number)
{
	struct peer *peer;

	LIST_FOREACH(peer, &peers->all, link)
	{
		if (peer->number == number)
			return peer;
	}
	return NULL;
}

void
peers_send(struct peers *peers, uint64_t number, const void *data, size_t len)
{
	struct peer *peer = find(peers, number);

	if (peer != NULL)
		peer_send(peer, data, len);
}

void
peers_watch(struct peers *peers, uint64_t number)
{
	struct peer *peer = find(peers, number);

	if (peer != NULL)
		peer->watches = true;
}

void
peers_broadcast(struct peers *peers, const void *data, size_t len)
{
	struct peer *peer;

	LIST_FOREACH(peer, &peers->all, link)
	{
		if (peer->watches)
			peer_send(peer, data, len);
	}
}

static bool
is_allowed(const struct peers *peers, int fd)
{
	struct ucred cred;
	socklen_t len = sizeof cred;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
		(cred.uid == 0 || cred.uid == peers->options.user);
}

static void
peer_add(struct peers *peers, int fd)
{
	struct peer *peer = calloc(1, sizeof *peer);
	int size = SEND_BUFFER;

	if (peer == NULL)
		abort();
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	peer->peers = peers;
	peer->number = ++peers->next_number;
	peer->fd = fd;
	STAILQ_INIT(&peer->queue);
	peer->readable = event_new(peers->base, fd, EV_READ | EV_PERSIST, peer_on_readable, peer);
	peer->writable = event_new(peers->base, fd, EV_WRITE | EV_PERSIST, peer_on_writable, peer);
	if (peer->readable == NULL || peer->writable == NULL || event_add(peer->readable, NULL) != 0)
		abort();
	LIST_INSERT_HEAD(&peers->all, peer, link);
	peers->count++;
}

static void
on_acceptable(evutil_socket_t listen_fd, short what, void *arg)
{
	struct peers *peers = arg;
	struct timeval pause = clock_tv(ACCEPT_PAUSE_MS);
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)what;
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			event_del(peers->acceptable);
			event_add(peers->accept_again, &pause);
		}
		return;
	}
	if (peers->count >= PEERS_MAX || !is_allowed(peers, fd)) {
		log_warn("refused a connection to spawner.sock: %s",
			peers->count >= PEERS_MAX ? "too many" : "wrong user");
		close(fd);
		return;
	}
	peer_add(peers, fd);
}

static void
on_accept_again(evutil_socket_t fd, short what, void *arg)
{
	struct peers *peers = arg;

	(void)fd;
	(void)what;
	event_add(peers->acceptable, NULL);
}

int
peers_create(
	struct event_base *base, const struct peers_options *options, struct peers **ret_peers, struct err *err)
{
	struct peers *peers = calloc(1, sizeof *peers);

	if (peers == NULL || (peers->buffer = malloc(options->message_max)) == NULL)
		abort();
	peers->base = base;
	peers->options = *options;
	LIST_INIT(&peers->all);
	if (evutil_make_socket_nonblocking(options->listen_fd) != 0) {
		free(peers->buffer);
		free(peers);
		return err_set(err, ERR_INTERNAL, "spawner.sock is unusable");
	}
	peers->acceptable = event_new(base, options->listen_fd, EV_READ | EV_PERSIST, on_acceptable, peers);
	peers->accept_again = event_new(base, -1, 0, on_accept_again, peers);
	if (peers->acceptable == NULL || peers->accept_again == NULL || event_add(peers->acceptable, NULL) != 0)
		abort();
	*ret_peers = peers;
	return 0;
}

void
peers_free(struct peers *peers)
{
	struct peer *peer;

	if (peers == NULL)
		return;
	while ((peer = LIST_FIRST(&peers->all)) != NULL)
		peer_free(peer);
	event_free(peers->acceptable);
	event_free(peers->accept_again);
	free(peers->buffer);
	free(peers);
}
