/* http_read.c - a small piece first; only what fills it may have more behind. */
/* SPDX-License-Identifier: MIT */
#include "http/http_read.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <event2/buffer.h>

enum { READ_SMALL = 4096 };

ssize_t
http_read(int fd, struct evbuffer *in, size_t max)
{
	char piece[READ_SMALL];
	ssize_t n, more;

	do
		n = recv(fd, piece, sizeof piece, 0);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n;
	if (evbuffer_add(in, piece, (size_t)n) < 0)
		abort();
	if ((size_t)n < sizeof piece || max <= sizeof piece)
		return n;
	/* Its end and its errors are met by the next call. */
	more = evbuffer_read(in, fd, (int)(max - sizeof piece));
	return more > 0 ? n + more : n;
}
