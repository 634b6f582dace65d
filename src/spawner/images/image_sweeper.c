/* image_sweeper.c - starts the child, hears what it says. */
/* SPDX-License-Identifier: MIT */
#include "spawner/images/image_sweeper.h"

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "spawner/pool/child.h"
#include "spawner/site.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>

/* What the child says: first that it has decided, then how it ended. */
struct sweep_word {
	bool is_end;
	struct image_sweep_result result;
};

struct image_sweeper {
	struct event_base *base;
	struct image_sweeper_options options;
	struct event *start, *readable;
	int fd; /* of the child's socket; -1: none runs */
	bool decides, wanted;
	int64_t budget; /* of the sweep that is wanted */
};

void
image_sweep_use(struct image_sweep_order *order, const char *digest)
{
	if (digest[0] == '\0')
		return;
	order->used = alloc_resize(order->used, (order->used_count + 1) * sizeof *order->used);
	memcpy(order->used[order->used_count++], digest, sizeof *order->used);
}

static void
say(int fd, const struct sweep_word *word)
{
	while (send(fd, word, sizeof *word, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static void
say_decided(void *arg)
{
	say(*(const int *)arg, &(struct sweep_word){ .is_end = false });
}

static _Noreturn void
run_child(const struct image_sweep_order *order, int fd)
{
	struct sweep_word word = { .is_end = true };

	log_init("sweeper", LOG_LEVEL_INFO);
	image_sweep(order, say_decided, &fd, &word.result);
	say(fd, &word);
	_exit(0);
}

static void
end(struct image_sweeper *sweeper, const struct image_sweep_result *result)
{
	event_del(sweeper->readable);
	close(sweeper->fd);
	sweeper->fd = -1;
	if (sweeper->decides) {
		sweeper->decides = false;
		sweeper->options.decided(sweeper->options.arg);
	}
	sweeper->options.done(result, sweeper->options.arg);
	if (sweeper->wanted)
		event_active(sweeper->start, EV_TIMEOUT, 0);
}

static void
on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct image_sweeper *sweeper = arg;
	struct sweep_word word;
	ssize_t n = recv(fd, &word, sizeof word, MSG_DONTWAIT);

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof word) {
		log_warn("the process that removes images has died");
		end(sweeper, NULL);
	} else if (word.is_end) {
		end(sweeper, &word.result);
	} else if (sweeper->decides) {
		sweeper->decides = false;
		sweeper->options.decided(sweeper->options.arg);
	}
}

static int
start_child(struct image_sweeper *sweeper, const struct image_sweep_order *order, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return err_set_errno(err, errno, "socketpair");
	pid = child_fork(sweeper->options.site, ends[1], err);
	if (pid == 0)
		run_child(order, ends[1]);
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return -1;
	}
	sweeper->fd = ends[0];
	sweeper->decides = true;
	event_assign(sweeper->readable, sweeper->base, ends[0], EV_READ | EV_PERSIST, on_readable, sweeper);
	if (event_add(sweeper->readable, NULL) != 0)
		abort();
	return 0;
}

static void
on_start(evutil_socket_t fd, short what, void *arg)
{
	struct image_sweeper *sweeper = arg;
	struct image_sweep_order order = { .images_fd = sweeper->options.site->images_fd,
		.budget = sweeper->budget };
	struct err err;

	(void)fd;
	(void)what;
	if (!sweeper->wanted || sweeper->fd >= 0 || order.images_fd < 0)
		return;
	sweeper->wanted = false;
	sweeper->options.list_used(&order, sweeper->options.arg);
	if (start_child(sweeper, &order, &err) != 0) {
		log_warn("images are not removed: %s", err.msg);
		sweeper->options.done(NULL, sweeper->options.arg);
	}
	free(order.used);
}

struct image_sweeper *
image_sweeper_create(struct event_base *base, const struct image_sweeper_options *options)
{
	struct image_sweeper *sweeper = alloc_zero(1, sizeof *sweeper);

	sweeper->base = base;
	sweeper->options = *options;
	sweeper->fd = -1;
	sweeper->start = event_new(base, -1, 0, on_start, sweeper);
	sweeper->readable = event_new(base, -1, 0, on_readable, sweeper);
	if (sweeper->start == NULL || sweeper->readable == NULL)
		abort();
	return sweeper;
}

void
image_sweeper_free(struct image_sweeper *sweeper)
{
	if (sweeper == NULL)
		return;
	event_free(sweeper->start);
	event_free(sweeper->readable);
	cleanup_fd(&sweeper->fd);
	free(sweeper);
}

void
image_sweeper_ask(struct image_sweeper *sweeper, int64_t budget)
{
	if (!sweeper->wanted || budget < sweeper->budget)
		sweeper->budget = budget;
	sweeper->wanted = true;
	event_active(sweeper->start, EV_TIMEOUT, 0);
}

bool
image_sweeper_is_asked(const struct image_sweeper *sweeper)
{
	return sweeper->wanted;
}

bool
image_sweeper_decides(const struct image_sweeper *sweeper)
{
	return sweeper->decides;
}
