/* make.c - makes one sandbox, step by step; any failure takes all steps back. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/make.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/config.h"
#include "conf/walls.h"
#include "spawner/make/agent_config.h"
#include "spawner/make/blank.h"
#include "spawner/make/box_dir.h"
#include "spawner/make/box_socket.h"
#include "spawner/disk/disk_watch.h"
#include "spawner/make/enter.h"
#include "spawner/make/maker.h"
#include "spawner/make/rootfs.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define REHEARSAL_MEMORY_BYTES (64LL << 20)

/* A directory that came with a blank gets its name when it has the record. */
static int
name_files(struct making *m, struct err *err)
{
	const char *ahead = m->order->group;

	if (box_dir_open(m->site, ahead, &m->box_fd, err) != 0 || box_state_write(m->box_fd, &m->state, err) != 0)
		return -1;
	return box_dir_rename(m->site, ahead, m->state.id, err);
}

static int
make_files(struct making *m, struct err *err)
{
	if (box_dir_make(m->site, m->state.id, &m->box_fd, err) != 0 ||
		box_state_write(m->box_fd, &m->state, err) != 0)
		return -1;
	return box_dir_fill(m->box_fd, m->state.first_id, err);
}

/* The record comes before what it describes. */
static int
make_state(struct making *m, struct err *err)
{
	const char *id = m->order->spec.id;

	m->state.first_id = site_first_id(m->site->config->idmap_base, m->order->slot);
	m->state.net = m->order->net;
	m->state.watched_disk = m->site->disk.quota ? 0 : m->order->spec.disk_bytes;
	memcpy(m->state.image, m->order->digest, sizeof m->state.image);
	memcpy(m->state.boot_id, m->site->boot_id, sizeof m->state.boot_id);
	if (m->blank != NULL) {
		m->state.pid = m->blank->child.pid;
		m->state.pid_start = proc_start_time(m->state.pid);
	}
	if (!text_copy(m->state.id, sizeof m->state.id, id) ||
		!text_copy(m->state.group, sizeof m->state.group, m->order->group) ||
		!text_copy(m->state.uid, sizeof m->state.uid, m->order->spec.uid))
		return err_set(err, ERR_INVALID, "id, group or uid too long");
	if ((m->has_root ? name_files(m, err) : make_files(m, err)) != 0 ||
		box_dir_open_spool(m->box_fd, &m->spool_fd, err) != 0)
		return -1;
	if (m->state.watched_disk > 0)
		return disk_watch_pipe(m->box_fd, &m->disk_fd, err);
	return disk_limit(&m->site->disk, m->box_fd, m->order->slot, m->order->spec.disk_bytes, err);
}

static int
make_socket(struct making *m, struct err *err)
{
	if (m->blank == NULL)
		return box_socket_make(m->site, m->state.id, &m->listen_fd, err);
	m->listen_fd = STEAL_FD(m->blank->listen_fd);
	return box_socket_rename(m->site, m->order->group, m->state.id, err);
}

void
making_is_started(struct making *m, pid_t pid)
{
	m->state.pid = pid;
	m->state.pid_start = proc_start_time(pid);
	m->state.live = true;
	if (m->started != NULL)
		m->started(&(struct make_result){ .pid = m->state.pid, .pid_start = m->state.pid_start },
			m->started_arg);
}

void
making_step_done(struct making *m, enum make_step step)
{
	int64_t now = clock_boot_us();

	m->step_us[step] += now - m->step_began;
	m->step_began = now;
}

/* The kernel should rather take a command than the agent. Not everyone may ask for that. */
static void
protect_agent(pid_t pid)
{
	char path[64];
	struct err err;

	snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
	if (file_put_at(AT_FDCWD, path, "-900", &err) != 0)
		log_debug("agent %d is not protected from the out-of-memory killer: %s", (int)pid, err.msg);
}

static struct agent_inherits
what_it_inherits(const struct making *m)
{
	bool fewer = (walls_default_capabilities() & ~m->site->capabilities) != 0;

	return (struct agent_inherits){ m->cgroup.dir_fd >= 0, m->cgroup.oom_fd >= 0, m->disk_fd >= 0,
		m->site->agent_clones, fewer ? (int64_t)m->site->capabilities : -1 };
}

/* Those of a blank are there, without limits. */
static int
make_groups(struct making *m, struct err *err)
{
	const struct spawn_create *spec = &m->order->spec;
	struct cgroup_limits limits = { spec->cpu_milli, spec->memory_bytes, spec->pids_max,
		m->site->config->sandbox_cpu_weight, m->site->config->sandbox_io_weight };
	uid_t first = site_first_id(m->site->config->idmap_base, m->order->slot);

	if (m->blank != NULL) {
		m->cgroup = m->blank->cgroup;
		cgroup_box_init(&m->blank->cgroup);
		return cgroup_box_limit(&m->site->cgroup, m->order->group, &limits, err);
	}
	if (m->site->maker->widen != NULL)
		m->site->maker->widen(&limits);
	if (cgroup_box_make(&m->site->cgroup, m->order->group, &limits, first, &m->cgroup, err) != 0)
		return -1;
	return enter_cut_loose(&m->cgroup.dir_fd, err);
}

static int
make_steps(struct making *m, struct err *err)
{
	struct agent_inherits inherits;

	if (make_state(m, err) != 0)
		return -1;
	making_step_done(m, MAKE_FILES);
	if (make_socket(m, err) != 0)
		return -1;
	making_step_done(m, MAKE_SOCKET);
	if (make_groups(m, err) != 0)
		return -1;
	making_step_done(m, MAKE_CGROUPS);
	inherits = what_it_inherits(m);
	if (agent_config_open(m->order, &m->image, &inherits, &m->config_fd, err) != 0)
		return -1;
	if (enter_cut_loose(&m->spool_fd, err) != 0 || m->site->maker->start(m, err) != 0)
		return -1;
	making_step_done(m, MAKE_INIT);
	if (m->order->rehearsal)
		return 0;
	protect_agent(m->state.pid);
	if (box_state_write(m->box_fd, &m->state, err) != 0)
		return -1;
	making_step_done(m, MAKE_RECORD);
	return 0;
}

static int
undo(const struct making *m)
{
	struct unmake_order order = { .pid = m->state.pid, .pid_start = m->state.pid_start, .net = m->order->net };
	struct err err;

	memcpy(order.id, m->state.id, sizeof order.id);
	memcpy(order.group, m->order->group, sizeof order.group);
	memcpy(order.uid, m->state.uid, sizeof order.uid);
	if (unmake_sandbox(m->site, &order, &err) == 0)
		return 0;
	log_error("sandbox %s could not be made, and not all of it be removed: %s", m->state.id, err.msg);
	return -1;
}

/* After undo(), if it has failed. */
static void
making_close(struct making *m, int rc)
{
	if (m->blank != NULL) { /* not come to it */
		m->child = m->blank->child;
		cleanup_fd(&m->blank->userns);
		cleanup_fd(&m->blank->listen_fd);
		cgroup_box_close(&m->blank->cgroup);
		blank_root_free(&m->blank->root);
	}
	if (rc == 0)
		enter_leave(&m->child);
	else
		enter_abort(&m->child);
	cleanup_fd(&m->box_fd);
	cleanup_fd(&m->listen_fd);
	cleanup_fd(&m->config_fd);
	cleanup_fd(&m->spool_fd);
	cleanup_fd(&m->disk_fd);
	cgroup_box_close(&m->cgroup);
	image_close(&m->image);
}

/* One that has died, or whose directories somebody has removed, is made anew, under the same name. */
static struct blank *
living_blank(const struct site *site, struct blank *blank)
{
	if (blank == NULL || (enter_is_standing(&blank->child) && blank_is_whole(site, blank)))
		return blank;
	blank_discard(site, blank);
	return NULL;
}

/* The blank's root and its directory, if they are of the image; else nothing of them stays. */
static void
take_root(struct making *m)
{
	if (m->blank == NULL)
		return;
	m->has_root = blank_root_fits(&m->blank->root, &m->image);
	if (m->has_root)
		blank_root_free(&m->blank->root);
	else
		blank_root_discard(m->site, m->order->group, &m->blank->root);
}

int
make_sandbox(const struct site *site, const struct make_order *order, struct blank *blank, make_started_f *started,
	void *arg, struct make_result *ret_result, struct err *err)
{
	struct making m = { .site = site,
		.order = order,
		.blank = living_blank(site, blank),
		.child = { .pidfd = -1, .channel = -1 },
		.box_fd = -1,
		.listen_fd = -1,
		.config_fd = -1,
		.spool_fd = -1,
		.disk_fd = -1,
		.started = started,
		.started_arg = arg,
		.step_began = clock_boot_us() };
	struct image_name name;
	int rc;

	if (image_name_parse(order->spec.image, &name, err) != 0 ||
		image_open(site->images_fd, &name, order->digest, &m.image, err) != 0) {
		if (m.blank != NULL)
			blank_discard(site, m.blank);
		return -1;
	}
	cgroup_box_init(&m.cgroup);
	take_root(&m);
	rc = make_steps(&m, err);
	if (rc == 0)
		memcpy(ret_result->step_us, m.step_us, sizeof m.step_us);
	if (rc != 0 || order->rehearsal)
		ret_result->remains = undo(&m) != 0;
	if (rc == 0 || ret_result->remains) {
		ret_result->pid = m.state.pid;
		ret_result->pid_start = m.state.pid_start;
	}
	making_close(&m, rc);
	return rc;
}

void
make_settle(const struct site *site, const struct make_order *order, const struct make_result *made)
{
	rootfs_settle();
	if (order->use_blank)
		box_dir_sweep(site, order->group + 1); /* a root that did not fit */
	if (made->pid > 0 && !made->remains)
		cgroup_box_settle(&site->cgroup, order->group, made->pid);
}

void
make_settle_adopted(const struct site *site, const char *group, pid_t pid, uint64_t pid_start)
{
	if (proc_is_alive(pid, pid_start))
		cgroup_box_settle(&site->cgroup, group, pid);
}

int
make_probe(const struct site *site, struct err *err)
{
	struct make_order *order = calloc(1, sizeof *order);
	struct unmake_order left = { 0 };
	struct make_result result = { 0 };
	int rc;

	if (order == NULL)
		abort();
	order->rehearsal = true;
	strcpy(order->spec.id, "-rehearsal"); /* no sandbox can be called so */
	id_uuid4(order->spec.uid);
	memcpy(order->group, order->spec.id, sizeof order->group);
	memcpy(left.id, order->spec.id, sizeof left.id);
	memcpy(left.group, order->group, sizeof left.group);
	memcpy(left.uid, order->spec.uid, sizeof left.uid);
	rc = unmake_sandbox(site, &left, err); /* of a spawner that died in the middle of its own */
	order->spec.cpu_milli = 1000;
	order->spec.memory_bytes = REHEARSAL_MEMORY_BYTES;
	order->spec.pids_max = 64;
	order->spec.disk_bytes = SPAWN_DISK_MIN;
	if (rc == 0 && mkdirat(site->images_fd, "empty", 0755) != 0 && errno != EEXIST)
		rc = err_set_errno(err, errno, "make an empty image in state_dir %.300s", site->config->state_dir);
	if (rc == 0 &&
		(size_t)snprintf(order->spec.image, sizeof order->spec.image, "dir:%s/images/empty",
			site->config->state_dir) >= sizeof order->spec.image)
		rc = err_set(err, ERR_INVALID, "state_dir is too long: %.300s", site->config->state_dir);
	if (rc == 0)
		rc = make_sandbox(site, order, NULL, NULL, NULL, &result, err);
	free(order);
	return rc;
}
