/*
 * unmake.c - takes a sandbox away, whatever of it there is.
 *
 * Processes first, then cgroups and socket, the directory with its record last,
 * so that whoever is interrupted can start again. Deleting files is slow and
 * happens later: the directory only moves into the trash.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/make.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum { GONE_TIMEOUT_MS = 20000 };

/* With its init dies all of the sandbox's process namespace. */
static int
kill_init(const struct unmake_order *order, struct err *err)
{
	AUTO_FD pidfd = -1;
	struct pollfd pollfd = { .events = POLLIN };

	if (order->pid <= 0)
		return 0;
	pidfd = (int)syscall(SYS_pidfd_open, order->pid, 0);
	if (pidfd < 0 || proc_start_time(order->pid) != order->pid_start)
		return 0;
	(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	pollfd.fd = pidfd;
	if (poll(&pollfd, 1, GONE_TIMEOUT_MS) <= 0)
		return err_set(err, ERR_TIMEOUT, "process %d of sandbox %s does not die of SIGKILL",
			(int)order->pid, order->id);
	return 0;
}

static int
move_to_trash(const struct site *site, const struct unmake_order *order, struct err *err)
{
	char name[ID_UUID_SIZE + 32];

	if (renameat(site->sandboxes_fd, order->id, site->trash_fd, order->uid) == 0 || errno == ENOENT)
		return 0;
	if (errno == EEXIST || errno == ENOTEMPTY) { /* an earlier life of that name is still being deleted */
		char uuid[ID_UUID_SIZE];

		id_uuid4(uuid);
		snprintf(name, sizeof name, "again-%s", uuid);
		if (renameat(site->sandboxes_fd, order->id, site->trash_fd, name) == 0)
			return 0;
	}
	return err_set_errno(err, errno, "move sandbox %s into the trash", order->id);
}

int
unmake_sandbox(const struct site *site, const struct unmake_order *order, struct err *err)
{
	cgroup_box_kill(&site->cgroup, order->id);
	if (kill_init(order, err) != 0)
		return -1;
	if (cgroup_box_remove(&site->cgroup, order->id, GONE_TIMEOUT_MS, err) != 0)
		return -1;
	if (file_remove_tree_at(site->sockets_fd, order->id, err) != 0)
		return err_prefix(err, "remove the socket of sandbox %s", order->id);
	return move_to_trash(site, order, err);
}

void
unmake_sweep_trash(const struct site *site)
{
	AUTO_FD fd = openat(site->trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (list == NULL)
		return;
	fd = -1; /* the list's from now on */
	while ((entry = readdir(list)) != NULL) {
		struct err err;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (file_remove_tree_at(site->trash_fd, entry->d_name, &err) != 0)
			log_warn("trash of sandbox %s stays until the next start: %s", entry->d_name, err.msg);
	}
}
