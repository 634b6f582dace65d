/* box_socket.c - sockets of agents: made, named, removed. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/box_socket.h"

#include "base/err.h"
#include "base/file.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 256 };

int
box_socket_make(const struct site *site, const char *name, int *ret_fd, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO_FD dir = -1;
	AUTO_FD fd = -1;

	if (mkdirat(site->sockets_fd, name, 0700) != 0)
		return err_set_errno(err, errno, "make the socket directory of %s", name);
	dir = openat(site->sockets_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (dir < 0 || fd < 0)
		return err_set_errno(err, errno, "socket of %s", name);
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/agent.sock", dir);
	if (bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
		fchownat(dir, "agent.sock", site->user, site->group, AT_SYMLINK_NOFOLLOW) != 0 ||
		fchmodat(dir, "agent.sock", 0600, 0) != 0 || fchown(dir, site->user, site->group) != 0 ||
		listen(fd, LISTEN_BACKLOG) != 0)
		return err_set_errno(err, errno, "socket of %s", name);
	*ret_fd = STEAL_FD(fd);
	return 0;
}

int
box_socket_rename(const struct site *site, const char *name, const char *to, struct err *err)
{
	if (renameat2(site->sockets_fd, name, site->sockets_fd, to, RENAME_NOREPLACE) != 0)
		return err_set_errno(err, errno, "name the socket directory of %s", to);
	return 0;
}

int
box_socket_remove(const struct site *site, const char *name, struct err *err)
{
	if (file_remove_tree_at(site->sockets_fd, name, err) != 0)
		return err_prefix(err, "remove the socket of sandbox %s", name);
	return 0;
}
