/* helper.c - the process that does what blocks; it lives on one socket and tells what it does there. */
/* SPDX-License-Identifier: MIT */
#include "spawner/pool/helper.h"

#include "base/alloc.h"
#include "base/proc.h"
#include "spawner/make/blank.h"
#include "spawner/make/rootfs.h"
#include "spawner/site.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SWEEP_NICE = 5 };

struct helper_life {
	const struct site *site;
	int fd;
	struct blank blanks[HELPER_BLANKS];
	unsigned blank_count;
};

static void
say(int fd, const struct helper_word *word)
{
	if (send(fd, word, sizeof *word, MSG_NOSIGNAL) != (ssize_t)sizeof *word)
		_exit(1);
}

static void
on_started(const struct make_result *init, void *arg)
{
	struct helper_word word = { .made = *init };

	say(*(const int *)arg, &word);
}

static void
do_make(struct helper_life *life, const struct make_order *order)
{
	struct helper_word word = { .state = HELPER_FINISHED };
	struct blank *blank = NULL;

	if (order->use_blank && life->blank_count > 0)
		blank = &life->blanks[--life->blank_count];
	word.failed = make_sandbox(life->site, order, blank, on_started, &life->fd, &word.made, &word.why) != 0;
	say(life->fd, &word);
	make_settle(life->site, order, &word.made);
	word.state = HELPER_RESTED;
	say(life->fd, &word);
}

static void
do_blank(struct helper_life *life, const struct blank_order *order)
{
	struct helper_word word = { .state = HELPER_FINISHED };
	struct blank *blank = &life->blanks[life->blank_count];

	if (life->blank_count == HELPER_BLANKS)
		_exit(1);
	word.failed = blank_make(life->site, order, blank, &word.why) != 0;
	rootfs_settle(); /* nobody waits for it */
	if (!word.failed) {
		life->blank_count++;
		word.made.pid = blank->child.pid;
		word.made.pid_start = proc_start_time(blank->child.pid);
	}
	say(life->fd, &word);
}

static void
do_discard(struct helper_life *life)
{
	struct helper_word word = { .state = HELPER_FINISHED };

	while (life->blank_count > 0)
		blank_discard(life->site, &life->blanks[--life->blank_count]);
	say(life->fd, &word);
}

static void
do_unmake(const struct helper_life *life, enum order_kind kind, const struct unmake_order *order)
{
	struct helper_word word = { .state = HELPER_FINISHED };

	if (kind == ORDER_UNMAKE)
		word.failed = unmake_sandbox(life->site, order, &word.why) != 0;
	else if (kind == ORDER_CHECK_NET)
		word.failed = net_check(&life->site->net, &word.why) != 0;
	else
		make_settle_adopted(life->site, order->group, order->pid, order->pid_start);
	say(life->fd, &word);
}

static void
do_sweep(const struct helper_life *life, const struct unmake_share *share)
{
	struct helper_word word = { .state = HELPER_FINISHED };

	(void)setpriority(PRIO_PROCESS, 0, SWEEP_NICE);
	unmake_sweep_trash(life->site, share);
	say(life->fd, &word);
}

_Noreturn void
helper_main(const struct site *site, int fd)
{
	struct helper_life life = { .site = site, .fd = fd };
	enum order_kind kind;
	union {
		struct make_order make;
		struct unmake_order unmake;
		struct unmake_share share;
		struct blank_order blank;
	} *order = must_alloc(malloc(sizeof *order + SPAWN_ENV_MAX));

	(void)prctl(PR_SET_NAME, "orchard-helper", 0, 0, 0);
	for (;;) {
		struct iovec iov[] = { { &kind, sizeof kind }, { order, sizeof *order + SPAWN_ENV_MAX } };
		struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
		ssize_t n = recvmsg(fd, &msg, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);
		site_keep_dirs(site);
		if (kind == ORDER_MAKE)
			do_make(&life, &order->make);
		else if (kind == ORDER_SWEEP)
			do_sweep(&life, &order->share);
		else if (kind == ORDER_BLANK)
			do_blank(&life, &order->blank);
		else if (kind == ORDER_DISCARD)
			do_discard(&life);
		else
			do_unmake(&life, kind, &order->unmake);
	}
}
