/* maker_builtin.c - makes the init by our own clone: no program is run but the agent. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/maker.h"

#include "conf/config.h"
#include "spawner/make/blank.h"
#include "spawner/make/pieces.h"
#include "spawner/make/rootfs.h"
#include "spawner/site.h"

#include <string.h>

static int
build_mounts(const struct making *m, int userns, int fds[ENTER_FDS], struct err *err)
{
	struct rootfs_plan plan = {
		.box_fd = m->box_fd,
		.scratch_fd = m->site->pieces_fd,
		.userns_fd = userns,
		.layers = m->image.layers,
		.layer_count = m->image.layer_count,
	};

	if (!m->has_root && rootfs_build(&plan, &fds[ENTER_ROOT], err) != 0)
		return -1;
	if (m->order->net.address != 0)
		return pieces_view(m->site->pieces_fd, PIECE_RESOLV, userns, &fds[ENTER_RESOLV], err);
	return 0;
}

static int
let_it_become(struct making *m, const int mounts[ENTER_FDS], struct err *err)
{
	struct enter_words words = { .shm_bytes = making_shm_bytes(m), .rehearsal = m->order->rehearsal };
	const int fds[ENTER_FDS] = {
		[ENTER_ROOT] = mounts[ENTER_ROOT],
		[ENTER_RESOLV] = mounts[ENTER_RESOLV],
		[ENTER_LISTEN] = m->listen_fd,
		[ENTER_CONFIG] = m->config_fd,
		[ENTER_GROUP] = m->cgroup.dir_fd,
		[ENTER_OOM] = m->cgroup.oom_fd,
		[ENTER_SPOOL] = m->spool_fd,
		[ENTER_DISK] = m->disk_fd,
	};

	memcpy(words.id, m->state.id, sizeof words.id);
	return enter_finish(&m->child, &words, fds, err);
}

/* The child waits in its namespaces: gives it what is the sandbox's, and lets it run. */
static int
furnish_child(struct making *m, int userns, bool stands, struct err *err)
{
	int mounts[ENTER_FDS] = { -1, -1 };
	int rc;

	if (m->order->net.address != 0 && net_attach(&m->site->net, m->child.pid, &m->order->net, err) != 0)
		return -1;
	rc = build_mounts(m, userns, mounts, err);
	making_step_done(m, MAKE_ROOT);
	if (rc == 0 && !stands)
		rc = blank_stand(m->site, &m->child, userns, -1, false, err);
	if (rc == 0)
		rc = let_it_become(m, mounts, err);
	cleanup_fd(&mounts[ENTER_ROOT]);
	cleanup_fd(&mounts[ENTER_RESOLV]);
	return rc;
}

static int
start_blank(struct making *m, struct err *err)
{
	AUTO_FD userns = m->blank->userns;

	m->child = m->blank->child;
	m->state.live = true;
	m->blank = NULL; /* its root is the sandbox's by now, or gone */
	return furnish_child(m, userns, true, err);
}

static int
start(struct making *m, struct err *err)
{
	AUTO_FD userns = -1;

	if (m->blank != NULL)
		return start_blank(m, err);
	if (enter_start(m->site, &m->cgroup, &m->child, err) != 0)
		return -1;
	making_step_done(m, MAKE_NAMESPACES);
	making_is_started(m, m->child.pid);
	if (blank_take_ids(m->site, m->order->slot, &m->child, &userns, err) != 0)
		return -1;
	return furnish_child(m, userns, false, err);
}

const struct maker maker_builtin = { .start = start };
