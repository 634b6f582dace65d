/* request.c - what the spawner does for each request. */
/* SPDX-License-Identifier: MIT */
#include "spawner/dispatch.h"

#include "base/clock.h"
#include "base/err.h"
#include "conf/config.h"
#include "spawn/peer.h"
#include "spawn/request.h"
#include "spawner/images/image_cache.h"
#include "spawner/make/make.h"
#include "spawner/site.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

static void
on_create(const struct spawn_create *spec, const char *env, uint64_t peer, void *arg)
{
	struct make_order *order = must_alloc(calloc(1, sizeof *order + spec->env_len));

	order->spec = *spec;
	memcpy(order->env, env, spec->env_len);
	dispatch_create(arg, order, peer, spec->head.seq);
}

static void
on_destroy(const struct spawn_target *target, uint64_t peer, void *arg)
{
	dispatch_destroy(arg, target->id, target->uid, peer, target->head.seq);
}

static void
on_refused(uint64_t peer, uint64_t seq, const struct err *why, void *arg)
{
	dispatch_reply(arg, peer, seq, why);
}

/* All of it is counted by the kernel, or was told before: nothing here waits. */
static void
reply_usage(struct dispatch *d, const struct box *box, uint64_t peer, uint64_t seq)
{
	struct spawn_usage usage = { .head = { SPAWN_VERSION, SPAWN_USAGE, seq } };
	struct cgroup_stat stat;

	site_keep_dirs(d->site);
	cgroup_box_stat(&d->site->cgroup, box->group, &stat);
	usage.cpu_us = stat.cpu_us;
	usage.memory_bytes = stat.memory_bytes;
	usage.memory_peak_bytes = stat.memory_peak_bytes;
	usage.pids = stat.pids;
	usage.disk_bytes = d->site->disk.quota ? disk_used(&d->site->disk, d->site->sandboxes_fd, box->id)
					       : box->disk_used;
	peers_send(d->peers, peer, &usage, sizeof usage);
}

static void
on_stat(const struct spawn_target *target, uint64_t peer, void *arg)
{
	struct dispatch *d = arg;
	const struct box *box = boxes_find_uid(d->boxes, target->uid);
	struct err err;

	if (box != NULL && box->phase == BOX_LIVE && strcmp(box->id, target->id) == 0) {
		reply_usage(d, box, peer, target->head.seq);
		return;
	}
	err_set(&err, ERR_NOT_FOUND, "sandbox %s does not run here", target->id);
	dispatch_reply(d, peer, target->head.seq, &err);
}

static void
on_prefetch(const struct spawn_prefetch *order, uint64_t peer, void *arg)
{
	struct dispatch *d = arg;
	struct image_name name;
	struct err err;

	if (order->first)
		image_cache_begin_pins(d->images);
	if (order->image[0] != '\0' && image_name_parse(order->image, &name, &err) != 0) {
		dispatch_reply(d, peer, order->head.seq, &err);
		return;
	}
	if (order->image[0] != '\0' && name.form != IMAGE_DIR)
		image_cache_pin(d->images, order->image);
	dispatch_reply(d, peer, order->head.seq, NULL);
}

static void
on_list(uint64_t peer, uint64_t seq, void *arg)
{
	struct dispatch *d = arg;
	const struct box *box;

	adopt_sweep(d);
	LIST_FOREACH(box, boxes_all(d->boxes), link)
	{
		struct spawn_item item = { .head = { SPAWN_VERSION, SPAWN_ITEM, seq },
			.pid = box->pid,
			.pid_start = box->pid_start,
			.known_ms = (clock_boot_us() - box->known_us) / 1000,
			.wait_status = box->wait_status,
			.oom_killed = box->oom_killed,
			.alive = box->phase < BOX_DEAD };

		if (box->stray)
			continue;
		memcpy(item.id, box->id, sizeof item.id);
		memcpy(item.uid, box->uid, sizeof item.uid);
		peers_send(d->peers, peer, &item, sizeof item);
	}
	dispatch_reply(d, peer, seq, NULL);
}

static int64_t
host_cpu_milli(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) * 1000LL : 1000;
}

static int64_t
host_memory_bytes(void)
{
	struct sysinfo info;

	return sysinfo(&info) == 0 ? (int64_t)info.totalram * info.mem_unit : 0;
}

static void
on_host(uint64_t peer, uint64_t seq, void *arg)
{
	struct dispatch *d = arg;
	struct spawn_host host = { .head = { SPAWN_VERSION, SPAWN_HOST_INFO, seq },
		.usable = d->usable,
		.cpu_milli = host_cpu_milli(),
		.memory_bytes = host_memory_bytes(),
		.networks = net_capacity(&d->site->net),
		.sandboxes = boxes_count(d->boxes),
		.creating = d->creating };

	snprintf(host.problem, sizeof host.problem, "%s", d->problem);
	snprintf(host.cgroup_mode, sizeof host.cgroup_mode, "%s",
		d->site->cgroup.mode != NULL ? d->site->cgroup.mode : "none");
	snprintf(host.missing, sizeof host.missing, "%s", d->site->cgroup.missing);
	peers_send(d->peers, peer, &host, sizeof host);
}

static void
on_watch(uint64_t peer, uint64_t seq, void *arg)
{
	struct dispatch *d = arg;

	(void)seq;
	peers_watch(d->peers, peer);
}

int
request_on_message(uint64_t peer, const void *data, size_t len, void *arg)
{
	static const struct spawn_server server = {
		.create = on_create,
		.destroy = on_destroy,
		.stat = on_stat,
		.list = on_list,
		.host = on_host,
		.watch = on_watch,
		.prefetch = on_prefetch,
		.refuse = on_refused,
	};

	return spawn_request_read(&server, peer, data, len, arg);
}
