/*
 * adopt.c - after a start: which sandboxes of an earlier spawner still live.
 *
 * Alive is one whose record is finished, of this boot, and whose process (pid
 * and start time) is there. It is no child of ours: its end shows on a pidfd.
 * Everything else, also groups and sockets without a record, is removed.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/dispatch.h"

#include "base/err.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "spawner/box_state.h"
#include "spawner/pool.h"
#include "spawner/site.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

static void
on_adopted_ended(evutil_socket_t fd, short what, void *arg)
{
	struct box *box = arg;

	(void)fd;
	(void)what;
	dispatch_ended(box->dispatch, box->pid, -1);
}

/* One without a usable record gets a uid of its own, so that it can be removed like any other. */
static struct box *
add_stray(struct dispatch *d, const char *name)
{
	char uid[ID_UUID_SIZE];
	struct box *box;

	id_uuid4(uid);
	box = boxes_add(d->boxes, name, uid);
	box->dispatch = d;
	return box;
}

static bool
watch_adopted(struct dispatch *d, struct box *box)
{
	box->pidfd = (int)syscall(SYS_pidfd_open, box->pid, 0);
	if (box->pidfd < 0 || !proc_is_alive(box->pid, box->pid_start))
		return false;
	box->ended = event_new(d->base, box->pidfd, EV_READ | EV_PERSIST, on_adopted_ended, box);
	if (box->ended == NULL || event_add(box->ended, NULL) != 0)
		abort();
	return true;
}

static void
adopt_one(struct dispatch *d, const char *name)
{
	AUTO_FD dir = openat(d->site->sandboxes_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct box_state state;
	struct err err;
	struct box *box;

	if (dir < 0 || box_state_read(dir, &state, &err) != 0 || strcmp(state.id, name) != 0 ||
		boxes_find_uid(d->boxes, state.uid) != NULL) {
		dispatch_remove(d, add_stray(d, name));
		return;
	}
	box = boxes_add(d->boxes, state.id, state.uid);
	box->dispatch = d;
	if (strcmp(state.boot_id, d->site->boot_id) == 0 && state.pid > 0)
		boxes_set_pid(d->boxes, box, state.pid, state.pid_start);
	/* one that is removed, too, keeps its range of ids until it is gone */
	if (boxes_claim_slot(d->boxes, box, state.slot) && box->pid > 0 && state.live && watch_adopted(d, box))
		box->phase = BOX_LIVE;
	else
		dispatch_remove(d, box);
}

typedef void name_f(struct dispatch *d, const char *name);

static int
each_name(struct dispatch *d, int dirfd, name_f *call, struct err *err)
{
	AUTO_FD fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *entry;

	if (list == NULL)
		return err_set_errno(err, errno, "look for sandboxes of an earlier start");
	fd = -1; /* the list's from now on */
	while ((entry = readdir(list)) != NULL) {
		if (entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
			strlen(entry->d_name) < sizeof((struct box *)NULL)->id)
			call(d, entry->d_name);
	}
	return 0;
}

static void
remove_stray(struct dispatch *d, const char *name)
{
	if (boxes_find_id(d->boxes, name) == NULL)
		dispatch_remove(d, add_stray(d, name));
}

static uint32_t
count_live(struct dispatch *d)
{
	const struct box *box;
	uint32_t live = 0;

	LIST_FOREACH(box, boxes_all(d->boxes), link)
	live += box->phase == BOX_LIVE;
	return live;
}

int
adopt_sandboxes(struct dispatch *d, struct err *err)
{
	int groups = cgroup_host_dir(&d->site->cgroup);

	if (each_name(d, d->site->sandboxes_fd, adopt_one, err) != 0 ||
		each_name(d, d->site->sockets_fd, remove_stray, err) != 0 ||
		(groups >= 0 && each_name(d, groups, remove_stray, err) != 0))
		return -1;
	if (boxes_count(d->boxes) > 0)
		log_info("found %u sandboxes of an earlier start: %u live, the others are removed",
			boxes_count(d->boxes), count_live(d));
	pool_sweep(d->janitor);
	return 0;
}
