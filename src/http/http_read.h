/*
 * http_read.h - takes what a socket has, in one system call when that is little.
 *
 * A bufferevent asks how much there is before it reads; most messages are small enough not to ask.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_HTTP_HTTP_READ_H
#define ORCHARD_HTTP_HTTP_READ_H

#include <stddef.h>
#include <sys/types.h>

struct evbuffer;

/* Adds about max bytes at most to in. How many; 0: the other side sends no more; -1 and errno, EAGAIN: none now. */
ssize_t http_read(int fd, struct evbuffer *in, size_t max);

#endif
