/* disk_watch.c - the pipe to an agent, and the child as the dispatcher sees it. */
/* SPDX-License-Identifier: MIT */
#include "spawner/disk/disk_watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "spawner/pool/child.h"
#include "spawner/site.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { AGAIN_MS = 1000 };

struct disk_watch {
	struct event_base *base;
	const struct site *site;
	disk_watch_measured_f *measured;
	void *arg;
	struct event *word, *again;
	int fd; /* its end of file is the child's end, and the other way round; -1: none runs */
};

int
disk_watch_pipe(int box_fd, int *ret_fd, struct err *err)
{
	if (mkfifoat(box_fd, "disk", 0600) != 0)
		return err_set_errno(err, errno, "make the pipe for the disk limit");
	/* Open at both ends, so that it has no end of file while spawners come and go. */
	*ret_fd = openat(box_fd, "disk", O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd >= 0 ? 0 : err_set_errno(err, errno, "open the pipe for the disk limit");
}

static int
start_child(struct disk_watch *watch, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair");
	pid = child_fork(watch->site, ends[1], err);
	if (pid == 0)
		disk_watch_run(watch->site, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	watch->fd = ends[0];
	event_assign(
		watch->word, watch->base, ends[0], EV_READ | EV_PERSIST, event_get_callback(watch->word), watch);
	if (event_add(watch->word, NULL) != 0)
		abort();
	return 0;
}

static void
start_later(struct disk_watch *watch)
{
	struct timeval pause = clock_tv(AGAIN_MS);

	event_add(watch->again, &pause);
}

static void
on_word(evutil_socket_t fd, short what, void *arg)
{
	struct disk_watch *watch = arg;
	struct disk_watch_word word;
	ssize_t n = recv(fd, &word, sizeof word, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == (ssize_t)sizeof word && memchr(word.uid, '\0', sizeof word.uid) != NULL) {
		watch->measured(word.uid, word.bytes, watch->arg);
		return;
	}
	event_del(watch->word);
	log_warn("the process that measures the disk of sandboxes has died");
	cleanup_fd(&watch->fd);
	start_later(watch);
}

static void
on_again(evutil_socket_t fd, short what, void *arg)
{
	struct disk_watch *watch = arg;
	struct err err;

	(void)fd;
	(void)what;
	if (start_child(watch, &err) == 0)
		return;
	log_error("the disk of sandboxes is not measured: %s", err.msg);
	start_later(watch);
}

struct disk_watch *
disk_watch_create(struct event_base *base, const struct site *site, disk_watch_measured_f *measured, void *arg)
{
	struct disk_watch *watch = alloc_zero(1, sizeof *watch);

	watch->base = base;
	watch->site = site;
	watch->measured = measured;
	watch->arg = arg;
	watch->fd = -1;
	watch->word = event_new(base, -1, EV_READ, on_word, watch);
	watch->again = event_new(base, -1, 0, on_again, watch);
	if (watch->word == NULL || watch->again == NULL)
		abort();
	on_again(-1, 0, watch);
	return watch;
}

void
disk_watch_free(struct disk_watch *watch)
{
	if (watch == NULL)
		return;
	event_free(watch->word);
	event_free(watch->again);
	cleanup_fd(&watch->fd);
	free(watch);
}
