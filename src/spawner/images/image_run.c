/* image_run.c - a child and the socket on which it tells how far it is. */
/* SPDX-License-Identifier: MIT */
#include "spawner/images/image_run.h"

#include "base/alloc.h"
#include "base/log.h"
#include "spawner/pool/child.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/socket.h>

struct image_run {
	pid_t pid; /* 0: reaped */
	int fd;
	struct event *readable;
	image_run_f *call;
	void *arg;
};

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct image_run *run = arg;
	struct imager_word word;
	ssize_t n = recv(fd, &word, sizeof word, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	word.why.msg[sizeof word.why.msg - 1] = '\0';
	run->call(n == (ssize_t)sizeof word ? &word : NULL, run->arg);
}

int
image_run_start(struct event_base *base, const struct site *site, const struct imager_order *order,
	image_run_f *call, void *arg, struct image_run **ret_run, struct err *err)
{
	struct image_run *run;
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair of an imager");
	pid = child_fork(site, ends[1], err);
	if (pid == 0) {
		log_init("imager", LOG_LEVEL_INFO);
		imager_main(order, ends[1]);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	run = alloc_zero(1, sizeof *run);
	*run = (struct image_run){ .pid = pid, .fd = ends[0], .call = call, .arg = arg };
	run->readable = event_new(base, run->fd, EV_READ | EV_PERSIST, on_readable, run);
	if (run->readable == NULL || event_add(run->readable, NULL) != 0)
		abort();
	*ret_run = run;
	return 0;
}

void
image_run_end(struct image_run *run)
{
	if (run == NULL)
		return;
	event_free(run->readable);
	close(run->fd);
	if (run->pid > 0)
		(void)kill(run->pid, SIGKILL);
	free(run);
}

bool
image_run_reaped(struct image_run *run, pid_t pid)
{
	if (run == NULL || run->pid != pid)
		return false;
	run->pid = 0;
	return true;
}
