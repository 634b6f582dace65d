/* blank.c - groups without limits, a child in namespaces, its ids, its ground, its root. */
/* SPDX-License-Identifier: MIT */
#include "spawner/make/blank.h"

#include "base/err.h"
#include "base/log.h"
#include "conf/config.h"
#include "spawner/make/box_dir.h"
#include "spawner/make/box_socket.h"
#include "spawner/make/id_map.h"
#include "spawner/make/pieces.h"
#include "spawner/site.h"

enum { GONE_TIMEOUT_MS = 20000 };

int
blank_take_ids(
	const struct site *site, uint32_t slot, const struct enter_child *child, int *ret_userns, struct err *err)
{
	if (id_map_open(child->pid, ret_userns, err) != 0)
		return -1;
	return id_map_write(child->pid, site_first_id(site->config->idmap_base, slot), err);
}

int
blank_stand(const struct site *site, struct enter_child *child, int userns, int root, bool wait, struct err *err)
{
	int ground[ENTER_GROUND] = { [ENTER_BASE] = -1, [ENTER_DEV] = -1, [ENTER_FIRST_ROOT] = root };
	int rc = -1;

	if (pieces_view(site->pieces_fd, PIECE_BASE, -1, &ground[ENTER_BASE], err) == 0 &&
		pieces_view(site->pieces_fd, PIECE_DEV, userns, &ground[ENTER_DEV], err) == 0)
		rc = enter_stand(child, ground, wait, err);
	cleanup_fd(&ground[ENTER_BASE]);
	cleanup_fd(&ground[ENTER_DEV]);
	return rc;
}

static int
make_steps(const struct site *site, struct blank *blank, struct err *err)
{
	uint32_t first = site_first_id(site->config->idmap_base, blank->order.slot);
	AUTO_FD root = -1;

	if (box_socket_make(site, blank->order.name, &blank->listen_fd, err) != 0 ||
		cgroup_box_make(&site->cgroup, blank->order.name, NULL, first, &blank->cgroup, err) != 0 ||
		enter_cut_loose(&blank->cgroup.dir_fd, err) != 0 ||
		enter_start(site, &blank->cgroup, &blank->child, err) != 0 ||
		blank_take_ids(site, blank->order.slot, &blank->child, &blank->userns, err) != 0)
		return -1;
	if (blank->order.image[0] != '\0' &&
		blank_root_make(site, &blank->order, blank->userns, &blank->root, &root, err) != 0)
		return -1;
	return blank_stand(site, &blank->child, blank->userns, root, true, err);
}

static int
try_make(const struct site *site, const struct blank_order *order, struct blank *ret_blank, struct err *err)
{
	*ret_blank = (struct blank){
		.order = *order, .child = { .pidfd = -1, .channel = -1 }, .userns = -1, .listen_fd = -1
	};
	cgroup_box_init(&ret_blank->cgroup);
	if (make_steps(site, ret_blank, err) == 0)
		return 0;
	blank_discard(site, ret_blank);
	return -1;
}

int
blank_make(const struct site *site, const struct blank_order *order, struct blank *ret_blank, struct err *err)
{
	struct blank_order plain = *order;

	if (try_make(site, order, ret_blank, err) == 0)
		return 0;
	if (order->image[0] == '\0')
		return -1;
	/* Images go, and disks are full: it is of use without a root, too. */
	log_debug("made ahead without a root of %s: %s", order->image, err->msg);
	plain.image[0] = '\0';
	return try_make(site, &plain, ret_blank, err);
}

bool
blank_is_whole(const struct site *site, const struct blank *blank)
{
	return faccessat(site->sockets_fd, blank->order.name, F_OK, 0) == 0 &&
		(!blank->root.made || faccessat(site->sandboxes_fd, blank->order.name, F_OK, 0) == 0);
}

void
blank_discard(const struct site *site, struct blank *blank)
{
	struct err err;

	enter_abort(&blank->child);
	cgroup_box_close(&blank->cgroup);
	cleanup_fd(&blank->userns);
	cleanup_fd(&blank->listen_fd);
	blank->userns = blank->listen_fd = -1;
	if (box_socket_remove(site, blank->order.name, &err) != 0)
		log_warn("of a sandbox made ahead: %s", err.msg);
	blank_root_discard(site, blank->order.name, &blank->root);
	box_dir_sweep(site, blank->order.name + 1);
	if (cgroup_box_remove(&site->cgroup, blank->order.name, GONE_TIMEOUT_MS, &err) != 0)
		log_warn("of a sandbox made ahead: %s", err.msg);
}
