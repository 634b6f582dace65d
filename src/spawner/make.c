/* make.c - makes one sandbox, step by step; any failure takes all steps back. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make.h"

#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/config.h"
#include "spawner/agent_config.h"
#include "spawner/box_state.h"
#include "spawner/enter.h"
#include "spawner/pieces.h"
#include "spawner/rootfs.h"
#include "spawner/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { LISTEN_BACKLOG = 256 };
#define SHM_BYTES_MIN (64LL << 20)

/* What one sandbox needs while it is made. */
struct making {
	const struct site *site;
	const struct make_order *order;
	struct box_state state;
	struct image image;
	struct cgroup_box cgroup;
	struct enter_plan plan;
	struct enter_child child;
	int box_fd, listen_fd, config_fd;
	make_started_f *started;
	void *started_arg;
};

static int
make_writable_layer(struct making *m, struct err *err)
{
	uid_t first = site_first_id(m->site->config->idmap_base, m->order->slot);
	static const char *const dirs[] = { "upper", "work" };

	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		if (mkdirat(m->box_fd, dirs[i], 0755) != 0 ||
			fchownat(m->box_fd, dirs[i], first, first, AT_SYMLINK_NOFOLLOW) != 0)
			return err_set_errno(err, errno, "make the writable layer of %s", m->state.id);
	}
	return 0;
}

/* The record comes before what it describes. */
static int
make_state(struct making *m, struct err *err)
{
	const char *id = m->order->spec.id;

	m->state.slot = m->order->slot;
	memcpy(m->state.boot_id, m->site->boot_id, sizeof m->state.boot_id);
	if (!text_copy(m->state.id, sizeof m->state.id, id) ||
		!text_copy(m->state.uid, sizeof m->state.uid, m->order->spec.uid))
		return err_set(err, ERR_INVALID, "id or uid too long");
	if (mkdirat(m->site->sandboxes_fd, id, 0700) != 0)
		return err_set_errno(err, errno, "make the directory of sandbox %s", id);
	m->box_fd = openat(m->site->sandboxes_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (m->box_fd < 0)
		return err_set_errno(err, errno, "open the directory of sandbox %s", id);
	if (box_state_write(m->box_fd, &m->state, err) != 0)
		return -1;
	return make_writable_layer(m, err);
}

/*
 * The agent inherits the socket; no host directory is visible inside, so user
 * code can put nothing where the service connects to.
 */
static int
make_socket(struct making *m, struct err *err)
{
	const struct site *site = m->site;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO_FD dir = -1;

	if (mkdirat(site->sockets_fd, m->state.id, 0700) != 0)
		return err_set_errno(err, errno, "make the socket directory of %s", m->state.id);
	dir = openat(site->sockets_fd, m->state.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	m->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (dir < 0 || m->listen_fd < 0)
		return err_set_errno(err, errno, "socket of %s", m->state.id);
	snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/agent.sock", dir);
	if (bind(m->listen_fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
		fchownat(dir, "agent.sock", site->user, site->group, AT_SYMLINK_NOFOLLOW) != 0 ||
		fchmodat(dir, "agent.sock", 0600, 0) != 0 || fchown(dir, site->user, site->group) != 0 ||
		listen(m->listen_fd, LISTEN_BACKLOG) != 0)
		return err_set_errno(err, errno, "socket of %s", m->state.id);
	return 0;
}

static int
write_id_map(pid_t pid, const char *file, uid_t first, struct err *err)
{
	char path[64], text[64];

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	snprintf(text, sizeof text, "0 %u %d", first, SITE_IDS);
	return file_put_at(AT_FDCWD, path, text, err);
}

static int
build_mounts(struct making *m, int userns, int mounts[ENTER_MOUNTS], struct err *err)
{
	struct rootfs_plan plan = {
		.box_fd = m->box_fd,
		.scratch_fd = m->site->pieces_fd,
		.userns_fd = userns,
		.layers = m->image.layers,
		.layer_count = m->image.layer_count,
	};

	if (rootfs_build(&plan, &mounts[ENTER_ROOT], err) != 0 ||
		pieces_view(m->site->pieces_fd, userns, &mounts[ENTER_DEV], err) != 0)
		return -1;
	return 0;
}

/* The child waits in its namespaces: gives it its ids and mounts, and lets it run. */
static int
furnish_child(struct making *m, struct err *err)
{
	uid_t first = site_first_id(m->site->config->idmap_base, m->order->slot);
	int mounts[ENTER_MOUNTS] = { -1, -1 };
	AUTO_FD userns = -1;
	char path[64];
	int rc;

	snprintf(path, sizeof path, "/proc/%d/ns/user", (int)m->child.pid);
	userns = open(path, O_RDONLY | O_CLOEXEC);
	if (userns < 0)
		return err_set_errno(err, errno, "user namespace of the sandbox");
	if (write_id_map(m->child.pid, "uid_map", first, err) != 0 ||
		write_id_map(m->child.pid, "gid_map", first, err) != 0)
		return -1;
	rc = build_mounts(m, userns, mounts, err);
	if (rc == 0)
		rc = enter_finish(&m->child, mounts, err);
	for (int i = 0; i < ENTER_MOUNTS; i++)
		cleanup_fd(&mounts[i]);
	return rc;
}

static int
start_init(struct making *m, struct err *err)
{
	int64_t half = m->order->spec.memory_bytes / 2;

	m->plan = (struct enter_plan){ .site = m->site,
		.id = m->state.id,
		.cgroup = &m->cgroup,
		.listen_fd = m->listen_fd,
		.config_fd = m->config_fd,
		.rehearsal = m->order->rehearsal,
		.shm_bytes = half < SHM_BYTES_MIN ? SHM_BYTES_MIN : half };
	if (enter_start(&m->plan, &m->child, err) != 0)
		return -1;
	m->state.pid = m->child.pid;
	m->state.pid_start = proc_start_time(m->child.pid);
	m->state.live = true;
	if (m->started != NULL)
		m->started(&(struct make_result){ m->state.pid, m->state.pid_start }, m->started_arg);
	if (furnish_child(m, err) != 0) {
		enter_abort(&m->child);
		return -1;
	}
	return 0;
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

static int
make_steps(struct making *m, struct err *err)
{
	const struct spawn_create *spec = &m->order->spec;
	struct cgroup_limits limits = { spec->cpu_milli, spec->memory_bytes, spec->pids_max };
	uid_t first = site_first_id(m->site->config->idmap_base, m->order->slot);

	if (make_state(m, err) != 0 || make_socket(m, err) != 0 ||
		cgroup_box_make(&m->site->cgroup, spec->id, &limits, first, &m->cgroup, err) != 0)
		return -1;
	if (agent_config_open(
		    m->order, &m->image, m->cgroup.dir_fd >= 0, m->cgroup.oom_fd >= 0, &m->config_fd, err) != 0)
		return -1;
	if (start_init(m, err) != 0)
		return -1;
	if (m->order->rehearsal)
		return 0;
	protect_agent(m->child.pid);
	cgroup_box_seal(&m->site->cgroup, spec->id, spec->pids_max);
	if (box_state_write(m->box_fd, &m->state, err) != 0) {
		enter_abort(&m->child);
		return -1;
	}
	return 0;
}

static void
undo(const struct making *m)
{
	struct unmake_order order = { .pid = m->state.pid, .pid_start = m->state.pid_start };
	struct err err;

	memcpy(order.id, m->state.id, sizeof order.id);
	memcpy(order.uid, m->state.uid, sizeof order.uid);
	if (unmake_sandbox(m->site, &order, &err) != 0)
		log_error("sandbox %s could not be made, and not all of it be removed: %s", m->state.id, err.msg);
}

int
make_sandbox(const struct site *site, const struct make_order *order, make_started_f *started, void *arg,
	struct make_result *ret_result, struct err *err)
{
	struct making m = { .site = site,
		.order = order,
		.box_fd = -1,
		.listen_fd = -1,
		.config_fd = -1,
		.child = { .pidfd = -1, .channel = -1 },
		.started = started,
		.started_arg = arg };
	struct image_name name;
	int rc;

	if (image_name_parse(order->spec.image, &name, err) != 0 ||
		image_open(site->images_fd, &name, order->digest, &m.image, err) != 0)
		return -1;
	cgroup_box_init(&m.cgroup);
	rc = make_steps(&m, err);
	if (rc == 0) {
		ret_result->pid = m.state.pid;
		ret_result->pid_start = m.state.pid_start;
	}
	if (rc != 0 || order->rehearsal)
		undo(&m);
	cleanup_fd(&m.child.pidfd);
	cleanup_fd(&m.child.channel);
	cleanup_fd(&m.box_fd);
	cleanup_fd(&m.listen_fd);
	cleanup_fd(&m.config_fd);
	cgroup_box_close(&m.cgroup);
	image_close(&m.image);
	return rc;
}

int
make_probe(const struct site *site, struct err *err)
{
	struct make_order *order = calloc(1, sizeof *order);
	struct unmake_order left = { 0 };
	struct make_result result;
	int rc;

	if (order == NULL)
		abort();
	order->rehearsal = true;
	strcpy(order->spec.id, "-rehearsal"); /* no sandbox can be called so */
	id_uuid4(order->spec.uid);
	memcpy(left.id, order->spec.id, sizeof left.id);
	memcpy(left.uid, order->spec.uid, sizeof left.uid);
	rc = unmake_sandbox(site, &left, err); /* of a spawner that died in the middle of its own */
	order->spec.cpu_milli = 1000;
	order->spec.memory_bytes = SHM_BYTES_MIN;
	order->spec.pids_max = 64;
	if (rc == 0 && mkdirat(site->images_fd, "empty", 0755) != 0 && errno != EEXIST)
		rc = err_set_errno(err, errno, "make an empty image in state_dir %.300s", site->config->state_dir);
	if (rc == 0 &&
		(size_t)snprintf(order->spec.image, sizeof order->spec.image, "dir:%s/images/empty",
			site->config->state_dir) >= sizeof order->spec.image)
		rc = err_set(err, ERR_INVALID, "state_dir is too long: %.300s", site->config->state_dir);
	if (rc == 0)
		rc = make_sandbox(site, order, NULL, NULL, &result, err);
	free(order);
	return rc;
}
