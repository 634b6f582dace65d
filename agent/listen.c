/* listen.c - numeric addresses only: a static program resolves no names. */
/* SPDX-License-Identifier: MIT */
#include "agent/listen.h"

#include "base/err.h"

#include <errno.h>
#include <event2/util.h>
#include <fcntl.h>
#include <sys/socket.h>

static int
listen_inherit(int fd, struct err *err)
{
	int listening = 0;
	socklen_t len = sizeof listening;
	int flags;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 || !listening)
		return err_set(err, ERR_INVALID, "descriptor %d is no listening socket", fd);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_set_errno(err, errno, "listening socket");
	return fd;
}

int
listen_open(int fd, const char *address, struct err *err)
{
	struct sockaddr_storage where;
	int len = sizeof where, one = 1;
	AUTO_FD made = -1;

	if (fd >= 0)
		return listen_inherit(fd, err);
	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&where, &len) < 0)
		return err_set(err, ERR_INVALID, "%s: must be ADDRESS:PORT with a numeric address", address);
	made = socket(where.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (made < 0)
		return err_set_errno(err, errno, "socket");
	setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(made, (struct sockaddr *)&where, (socklen_t)len) < 0 || listen(made, SOMAXCONN) < 0)
		return err_set_errno(err, errno, "listen on %s", address);
	return STEAL_FD(made);
}
