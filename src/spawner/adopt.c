/*
 * adopt.c - which sandboxes of an earlier spawner still live, and what belongs to none.
 *
 * Alive is one whose record is finished, of this boot, and whose process (pid
 * and start time) is there, unless its removal had begun. It is no child of ours:
 * its end shows on a pidfd.
 * Everything else, also groups, sockets and what a runtime remembers without a record, is removed,
 * at the start and whenever somebody asks what there is.
 */
/* SPDX-License-Identifier: MIT */
#include "spawner/dispatch.h"

#include "base/err.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/config.h"
#include "spawn/destroyed.h"
#include "spawner/blanks.h"
#include "spawner/box_state.h"
#include "spawner/cgroup/cgroup_earlier.h"
#include "spawner/pool/pool.h"
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
	dispatch_ended(box->dispatch, box->pid, box->pid_start, -1);
}

/* What belongs to no sandbox that is known is removed like one of that name and uid. */
static void
remove_as(struct dispatch *d, const char *name, const char *uid)
{
	struct box *box = boxes_add(d->boxes, name, uid);

	box->dispatch = d;
	box->stray = true;
	dispatch_remove(d, box);
}

static void
remove_orphan(struct dispatch *d, const char *name, const char *why)
{
	char uid[ID_UUID_SIZE];

	log_write(
		LOG_LEVEL_WARN, &(struct log_ctx){ .sandbox_id = name }, "%s: removed by the rule \"orphan\"", why);
	if (d->board != NULL)
		scoreboard_add(d->board, d->self, METRIC_REAPED_ORPHAN, 1);
	id_uuid4(uid); /* its own is not known */
	remove_as(d, name, uid);
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
claim_address(struct dispatch *d, struct box *box, const struct net_grant *net)
{
	if (net->address == 0)
		return;
	box->net.egress = net->egress;
	if (!boxes_claim_address(d->boxes, box, net->address))
		log_warn(
			"sandbox %s has an address of another network_subnet: it has no network any more", box->id);
}

static bool
claim_ids(struct dispatch *d, struct box *box, const struct box_state *state)
{
	uint32_t first = state->first_id;

	if (first == 0)
		first = site_first_id(d->config->idmap_base, state->slot);
	if (boxes_claim_ids(d->boxes, box, first))
		return true;
	log_warn("sandbox %s has the user ids of another one: it is removed", box->id);
	return false;
}

static int
read_record(struct dispatch *d, const char *name, struct box_state *ret_state, struct err *err)
{
	AUTO_FD dir = openat(d->site->sandboxes_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return err_set_errno(err, errno, "open the directory of this sandbox");
	if (box_state_read(dir, ret_state, err) != 0)
		return err_prefix(err, "no usable record of this sandbox");
	if (strcmp(ret_state->id, name) != 0)
		return err_set(err, ERR_INVALID, "its record is of sandbox %s", ret_state->id);
	if (boxes_find_uid(d->boxes, ret_state->uid) != NULL)
		return err_set(err, ERR_INVALID, "its record has the uid of another sandbox");
	return 0;
}

static bool
claim_group(struct dispatch *d, struct box *box, const struct box_state *state)
{
	if (boxes_claim_group(d->boxes, box, state->group))
		return true;
	log_warn("sandbox %s has the control groups of another one: it is removed", box->id);
	return false;
}

/* Its maker may have been killed before it had settled it. */
static void
go_on_with(struct dispatch *d, struct box *box)
{
	box->phase = BOX_LIVE;
	pool_settle(d->janitor, box->group, box->pid, box->pid_start);
}

static void
adopt_one(struct dispatch *d, const char *name)
{
	struct box_state state;
	struct err err;
	struct box *box;
	bool has_groups;

	if (blanks_is_name(name)) {
		remove_as(d, name, name + 1);
		return;
	}
	if (read_record(d, name, &state, &err) != 0) {
		remove_orphan(d, name, err.msg);
		return;
	}
	box = boxes_add(d->boxes, state.id, state.uid);
	box->dispatch = d;
	memcpy(box->image, state.image, sizeof box->image);
	if (strcmp(state.boot_id, d->site->boot_id) == 0 && state.pid > 0)
		boxes_set_pid(d->boxes, box, state.pid, state.pid_start);
	claim_address(d, box, &state.net);
	has_groups = claim_group(d, box, &state);
	/* one that is removed, too, keeps its range of ids until it is gone */
	if (claim_ids(d, box, &state) && has_groups && box->pid > 0 && state.live &&
		!destroyed_has(d->destroyed, box->uid) && watch_adopted(d, box))
		go_on_with(d, box);
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

/* Only one whose removal has failed is tried again; nobody else asks for it. A blank, even a dead one, is its helper's. */
static void
remove_again(struct dispatch *d, struct box *box)
{
	if (box->stray && !box->blank && box->phase == BOX_DEAD)
		dispatch_remove(d, box);
}

/* What was made ahead has died with its spawner: nobody misses it. */
static void
remove_stray_group(struct dispatch *d, const char *name)
{
	struct box *box = boxes_find_group(d->boxes, name);

	if (box == NULL)
		box = boxes_find_id(d->boxes, name);
	if (box != NULL)
		remove_again(d, box);
	else if (blanks_is_name(name))
		remove_as(d, name, name + 1);
	else
		remove_orphan(d, name, "a control group of no sandbox");
}

static void
remove_stray(struct dispatch *d, const char *name)
{
	struct box *box = boxes_find_id(d->boxes, name);

	if (box == NULL)
		box = boxes_find_group(d->boxes, name); /* it was a blank */
	if (box != NULL)
		remove_again(d, box);
	else if (blanks_is_name(name))
		remove_as(d, name, name + 1);
	else
		remove_orphan(d, name, "a directory of no sandbox");
}

/* What a runtime remembers goes by uid; what else there was of that sandbox had its name and is removed by that. */
static void
remove_stray_home(struct dispatch *d, const char *name)
{
	struct box *box = boxes_find_uid(d->boxes, name);

	if (box != NULL)
		remove_again(d, box);
	else if (id_is_uuid(name) && boxes_find_id(d->boxes, name) == NULL)
		remove_as(d, name, name);
}

/* A name that a helper is at work on has its box from before the first to after the last of it. */
static int
remove_strays(struct dispatch *d, struct err *err)
{
	int groups;

	if (each_name(d, d->site->sandboxes_fd, remove_stray, err) != 0 ||
		each_name(d, d->site->sockets_fd, remove_stray, err) != 0 ||
		each_name(d, d->site->runtimes_fd, remove_stray_home, err) != 0)
		return -1;
	for (unsigned place = 0; cgroup_host_dir(&d->site->cgroup, place, &groups); place++) {
		if (groups >= 0 && each_name(d, groups, remove_stray_group, err) != 0)
			return -1;
	}
	return 0;
}

void
adopt_sweep(struct dispatch *d)
{
	struct err err;

	if (remove_strays(d, &err) != 0)
		log_warn("%s", err.msg);
	cgroup_earlier_trim(&d->site->cgroup);
	net_keeper_check(&d->net, d->janitor);
	pool_sweep(d->janitor, NULL);
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
	if (each_name(d, d->site->sandboxes_fd, adopt_one, err) != 0 || remove_strays(d, err) != 0)
		return -1;
	if (boxes_count(d->boxes) > 0)
		log_info("found %u sandboxes of an earlier start: %u live, the others are removed",
			boxes_count(d->boxes), count_live(d));
	net_keeper_restore(&d->net);
	pool_sweep(d->janitor, NULL);
	return 0;
}
