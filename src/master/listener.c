/* listener.c - binding, with messages that say which setting to change. */
/* SPDX-License-Identifier: MIT */
#include "master/listener.h"

#include "base/err.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* "[::1]" is how people write an IPv6 address next to a port. */
static void
host_without_brackets(const char *host, char *buf, size_t size)
{
	size_t len = strlen(host);

	if (len >= 2 && host[0] == '[' && host[len - 1] == ']')
		snprintf(buf, size, "%.*s", (int)(len - 2), host + 1);
	else
		snprintf(buf, size, "%s", host);
}

static int
host_resolve(const char *host, int64_t port, struct addrinfo **ret_list, struct err *err)
{
	static const struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	char name[256];
	char service[24];
	int rc;

	host_without_brackets(host, name, sizeof name);
	snprintf(service, sizeof service, "%" PRId64, port);
	rc = getaddrinfo(name, service, &hints, ret_list);
	if (rc != 0)
		return err_set(err, ERR_INVALID,
			"the setting listen_host is \"%s\", which is no address of this machine (%s): 127.0.0.1, "
			"0.0.0.0 and "
			":: always work",
			host, gai_strerror(rc));
	return 0;
}

/* Bound; listening only if hear is true. */
static int
tcp_open(const struct addrinfo *address, bool hear)
{
	AUTO_FD fd = socket(
		address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol);
	int on = 1;
	int off = 0;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0)
		return -1;
	if (address->ai_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0)
		return -1;
	if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || (hear && listen(fd, LISTENER_BACKLOG) < 0))
		return -1;
	return STEAL_FD(fd);
}

/* "::" is every address of both families; where there is no IPv6 those are the ones of IPv4. */
static int
tcp_open_without_v6(const struct addrinfo *address, int64_t port, bool hear)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address->ai_addr;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct addrinfo any = { .ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_addr = (struct sockaddr *)&v4,
		.ai_addrlen = sizeof v4 };

	if (address->ai_family != AF_INET6 || !IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr) ||
		(errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL))
		return -1;
	return tcp_open(&any, hear);
}

static int
tcp_explain(const char *host, int64_t port, int errnum, struct err *err)
{
	if (errnum == EADDRINUSE)
		return err_set(err, ERR_EXISTS,
			"%s:%" PRId64 " is in use by another program: stop it (`ss -ltnp 'sport = :%" PRId64
			"'` shows which), or choose another port with the setting port",
			host, port, port);
	if (errnum == EADDRNOTAVAIL)
		return err_set(err, ERR_INVALID,
			"%s is no address of this machine: set listen_host to one that `ip address` shows, or to "
			"0.0.0.0",
			host);
	return err_set_errno(err, errnum, "cannot listen on %s:%" PRId64, host, port);
}

static int
open_host(const char *host, int64_t port, bool hear, int *ret_fd, struct err *err)
{
	struct addrinfo *list;
	int errnum = EADDRNOTAVAIL;
	int fd = -1;

	if (host_resolve(host, port, &list, err) < 0)
		return -1;
	for (const struct addrinfo *a = list; a != NULL && fd < 0; a = a->ai_next) {
		fd = tcp_open(a, hear);
		if (fd < 0)
			fd = tcp_open_without_v6(a, port, hear);
		if (fd < 0)
			errnum = errno;
	}
	freeaddrinfo(list);
	if (fd < 0)
		return tcp_explain(host, port, errnum, err);
	*ret_fd = fd;
	return 0;
}

int
listener_open_tcp(const char *host, int64_t port, int *ret_fd, struct err *err)
{
	return open_host(host, port, true, ret_fd, err);
}

int
listener_check(const char *host, struct err *err)
{
	AUTO_FD fd = -1;

	return open_host(host, 0, false, &fd, err);
}

static int
unlink_socket(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_set_errno(err, errno, "%s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_EXISTS, "%s is in the way and is no socket: remove it", path);
	if (unlink(path) < 0 && errno != ENOENT)
		return err_set_errno(err, errno, "the old socket %s cannot be removed", path);
	return 0;
}

int
listener_open_seqpacket(const char *path, uid_t uid, gid_t gid, int *ret_fd, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO_FD fd = -1;

	if (!text_copy(address.sun_path, sizeof address.sun_path, path))
		return err_set(
			err, ERR_INVALID, "the path %s is too long for a socket: choose a shorter run_dir", path);
	if (unlink_socket(path, err) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		return err_set_errno(err, errno, "cannot make the socket %s", path);
	/* Nobody can connect before listen(), so there is no moment with other rights. */
	if (chmod(path, 0600) < 0 || lchown(path, uid, gid) < 0 || listen(fd, LISTENER_BACKLOG) < 0)
		return err_set_errno(err, errno, "cannot listen on %s", path);
	*ret_fd = STEAL_FD(fd);
	return 0;
}
