/*
 * unmake.c - takes a sandbox away, whatever of it there is.
 *
 * Processes first, then cgroups, rights at the gateway and socket, the directory with its record last,
 * so that whoever is interrupted can start again. Deleting files is slow and
 * happens later: the directory only moves into the trash.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/make.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "spawner/make/box_dir.h"
#include "spawner/make/box_socket.h"
#include "spawner/make/runtime_home.h"
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

int
unmake_sandbox(const struct site *site, const struct unmake_order *order, struct err *err)
{
	cgroup_box_kill(&site->cgroup, order->group);
	if (kill_init(order, err) != 0)
		return -1;
	if (cgroup_box_remove(&site->cgroup, order->group, GONE_TIMEOUT_MS, err) != 0)
		return -1;
	if (net_detach(&site->net, &order->net, err) != 0)
		return -1;
	if (box_socket_remove(site, order->id, err) != 0 ||
		(strcmp(order->group, order->id) != 0 && box_socket_remove(site, order->group, err) != 0))
		return -1;
	if (runtime_home_remove(site->runtimes_fd, order->uid, err) != 0)
		return err_prefix(err, "remove what the runtime knows of sandbox %s", order->id);
	disk_release(&site->disk, site->sandboxes_fd, order->id);
	/* Of one that was a blank and has not come to its own name. */
	if (strcmp(order->group, order->id) != 0 && box_dir_discard(site, order->group, order->uid, err) != 0)
		return -1;
	return box_dir_discard(site, order->id, order->uid, err);
}

/* Uids are random; whatever else lies there is in some share too. */
unsigned
unmake_share_of(const char *uid, unsigned of)
{
	unsigned hash = 0;

	for (size_t i = 0; uid[i] != '\0' && i < ID_UUID_SIZE - 1; i++)
		hash = hash * 31 + (unsigned char)uid[i];
	return hash % of;
}

void
unmake_sweep_trash(const struct site *site, const struct unmake_share *share)
{
	const struct dirent *entry;
	AUTO_DIR *list = NULL;
	AUTO_FD fd = -1;

	fd = openat(site->trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	list = fd >= 0 ? fdopendir(fd) : NULL;
	if (list == NULL)
		return;
	fd = -1; /* the list's from now on */
	while ((entry = readdir(list)) != NULL) {
		struct err err;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
			unmake_share_of(entry->d_name, share->of) != share->number)
			continue;
		if (file_remove_tree_at(site->trash_fd, entry->d_name, &err) != 0)
			log_warn("trash of sandbox %s stays for now: %s", entry->d_name, err.msg);
	}
}
