/* disk.c - asks the filesystem, which knows of quotas. */
/* SPDX-License-Identifier: MIT */
#include "agent/disk.h"

#include <event2/event.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* A write that found no room may leave a last bit that is too small for it. */
enum { DISK_LEAST = 64 << 10 };

bool
disk_is_full(void)
{
	struct statvfs st;

	if (statvfs("/", &st) != 0 || st.f_blocks == 0)
		return false;
	return st.f_bavail * st.f_frsize < DISK_LEAST || (st.f_files > 0 && st.f_favail == 0);
}

struct disk_ear {
	void (*on_over)(void *arg);
	void *arg;
};

static void
disk_on_word(evutil_socket_t fd, short what, void *arg)
{
	const struct disk_ear *ear = arg;
	char words[64];

	(void)what;
	if (read(fd, words, sizeof words) > 0)
		ear->on_over(ear->arg);
}

void
disk_listen(struct event_base *base, int fd, void (*on_over)(void *arg), void *arg)
{
	static struct disk_ear ear; /* there is one agent */
	struct event *event;

	if (fd < 0)
		return;
	ear = (struct disk_ear){ on_over, arg };
	event = event_new(base, fd, EV_READ | EV_PERSIST, disk_on_word, &ear);
	if (event == NULL || event_add(event, NULL) != 0)
		abort();
}
