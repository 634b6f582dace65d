/* listen.c - numeric addresses only: a static program resolves no names. */
/* SPDX-License-Identifier: MIT */
#include "agent/listen.h"

#include "base/err.h"

#include <errno.h>
#include <event2/util.h>
#include <fcntl.h>
#include <netinet/in.h>
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

/* [::] is every address of IPv4 too. */
static int
listen_at(const struct sockaddr_storage *where, socklen_t len)
{
	AUTO_FD made = socket(where->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int one = 1, zero = 0;

	if (made < 0)
		return -1;
	setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (where->ss_family == AF_INET6)
		setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
	if (bind(made, (const struct sockaddr *)where, len) < 0 || listen(made, SOMAXCONN) < 0)
		return -1;
	return STEAL_FD(made);
}

/* Where the kernel has no IPv6, every address is one of IPv4. */
static int
listen_at_any_v4(const struct sockaddr_storage *where)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)where;
	struct sockaddr_storage any = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&any;

	if (where->ss_family != AF_INET6 || !IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) ||
		(errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL))
		return -1;
	v4->sin_family = AF_INET;
	v4->sin_port = v6->sin6_port;
	return listen_at(&any, sizeof *v4);
}

int
listen_open(int fd, const char *address, struct err *err)
{
	struct sockaddr_storage where;
	int len = sizeof where, made;

	if (fd >= 0)
		return listen_inherit(fd, err);
	if (evutil_parse_sockaddr_port(address, (struct sockaddr *)&where, &len) < 0)
		return err_set(err, ERR_INVALID, "%s: must be ADDRESS:PORT with a numeric address", address);
	made = listen_at(&where, (socklen_t)len);
	if (made < 0)
		made = listen_at_any_v4(&where);
	return made >= 0 ? made : err_set_errno(err, errno, "listen on %s", address);
}
