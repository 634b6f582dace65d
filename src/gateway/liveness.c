/*
 * liveness.c - is there still somebody at the other end of a connection?
 *
 * A peer that does not read cannot answer a ping, since the ping waits behind what it does not read. Its kernel
 * answers nevertheless: to what is sent, or to probes of the closed window, which come more and more seldom.
 */
/* SPDX-License-Identifier: MIT */
#include "gateway/terminal.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

enum { PROBE_PAUSE_MOST_MS = 120000 };

bool
liveness_is_gone(int fd, int64_t limit_ms)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return false; /* not TCP: the kernel tells its end by itself */
	if (info.tcpi_unacked == 0 && info.tcpi_probes > 0)
		limit_ms += PROBE_PAUSE_MOST_MS;
	return (info.tcpi_unacked > 0 || info.tcpi_probes > 0) && (int64_t)info.tcpi_last_ack_recv > limit_ms;
}
