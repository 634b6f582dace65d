/* request.c - reads what peers send; every length, string and number is checked before it is believed. */
/* SPDX-License-Identifier: MIT */
#include "spawner/dispatch.h"

#include "base/err.h"
#include "conf/config.h"
#include "ipc/spawn_msg.h"
#include "spawner/make.h"
#include "spawner/peer.h"
#include "spawner/site.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

enum { PIDS_MIN = 4, CPU_MAX = 1000000 };
#define MEMORY_MIN (8LL << 20)

size_t
request_message_max(void)
{
	return sizeof(struct spawn_create) + SPAWN_ENV_MAX;
}

static bool
is_ended(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* NUL-terminated "NAME=value" strings, the last one too. */
static bool
is_env(const char *env, size_t len)
{
	if (len > 0 && env[len - 1] != '\0')
		return false;
	for (size_t at = 0; at < len; at += strlen(env + at) + 1) {
		if (env[at] == '=' || strchr(env + at, '=') == NULL)
			return false;
	}
	return true;
}

/* A shape that no honest peer sends; false: drop it. */
static bool
create_is_formed(const struct spawn_create *spec, size_t len)
{
	unsigned char flag;

	memcpy(&flag, &spec->block_network, sizeof flag); /* any other value is no bool */
	return flag <= 1 && is_ended(spec->id, sizeof spec->id) && is_ended(spec->uid, sizeof spec->uid) &&
		is_ended(spec->token, sizeof spec->token) && is_ended(spec->image, sizeof spec->image) &&
		is_ended(spec->working_dir, sizeof spec->working_dir) && spec->env_len <= SPAWN_ENV_MAX &&
		len == sizeof *spec + spec->env_len;
}

static int
create_check(const struct spawn_create *spec, const char *env, struct err *err)
{
	if (!id_is_sandbox_id(spec->id) || !id_is_uuid(spec->uid) || spec->token[0] == '\0')
		return err_set(err, ERR_INVALID, "sandbox id, uid or token is malformed");
	if (spec->cpu_milli <= 0 || spec->cpu_milli > CPU_MAX)
		return err_set(err, ERR_INVALID, "cpu must be between 0.001 and %d cores", CPU_MAX / 1000);
	if (spec->memory_bytes < MEMORY_MIN)
		return err_set(err, ERR_INVALID, "memory must be at least %lld bytes", MEMORY_MIN);
	if (spec->pids_max < PIDS_MIN || spec->pids_max > INT_MAX)
		return err_set(err, ERR_INVALID, "the pids limit must be at least %d", PIDS_MIN);
	if (spec->working_dir[0] != '\0' && spec->working_dir[0] != '/')
		return err_set(err, ERR_INVALID, "working_dir must be an absolute path");
	if (!is_env(env, spec->env_len))
		return err_set(err, ERR_INVALID, "env must be NAME=value strings");
	return 0;
}

static int
on_create(struct dispatch *d, uint64_t peer, const void *data, size_t len)
{
	struct make_order *order;
	struct err err;

	if (len < sizeof order->spec)
		return -1;
	order = calloc(1, sizeof *order);
	if (order == NULL)
		abort();
	memcpy(&order->spec, data, sizeof order->spec);
	if (!create_is_formed(&order->spec, len)) {
		free(order);
		return -1;
	}
	memcpy(order->env, (const char *)data + sizeof order->spec, order->spec.env_len);
	if (create_check(&order->spec, order->env, &err) != 0) {
		dispatch_reply(d, peer, order->spec.head.seq, &err);
		free(order);
		return 0;
	}
	dispatch_create(d, order, peer, order->spec.head.seq);
	return 0;
}

static int
on_destroy(struct dispatch *d, uint64_t peer, const void *data, size_t len)
{
	struct spawn_target target;

	if (len != sizeof target)
		return -1;
	memcpy(&target, data, sizeof target);
	if (!is_ended(target.id, sizeof target.id) || !is_ended(target.uid, sizeof target.uid))
		return -1;
	dispatch_destroy(d, target.id, target.uid, peer, target.head.seq);
	return 0;
}

static void
on_list(struct dispatch *d, uint64_t peer, uint64_t seq)
{
	const struct box *box;

	LIST_FOREACH(box, boxes_all(d->boxes), link)
	{
		struct spawn_item item = { .head = { SPAWN_VERSION, SPAWN_ITEM, seq },
			.pid = box->pid,
			.pid_start = box->pid_start,
			.wait_status = box->wait_status,
			.oom_killed = box->oom_killed,
			.alive = box->phase < BOX_DEAD };

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
on_host(struct dispatch *d, uint64_t peer, uint64_t seq)
{
	struct spawn_host host = { .head = { SPAWN_VERSION, SPAWN_HOST_INFO, seq },
		.usable = d->usable,
		.cpu_milli = host_cpu_milli(),
		.memory_bytes = host_memory_bytes(),
		.sandboxes = boxes_count(d->boxes),
		.creating = d->creating };

	snprintf(host.problem, sizeof host.problem, "%s", d->problem);
	snprintf(host.cgroup_mode, sizeof host.cgroup_mode, "%s",
		d->site->cgroup.mode != NULL ? d->site->cgroup.mode : "none");
	snprintf(host.missing, sizeof host.missing, "%s", d->site->cgroup.missing);
	peers_send(d->peers, peer, &host, sizeof host);
}

int
request_on_message(uint64_t peer, const void *data, size_t len, void *arg)
{
	struct dispatch *d = arg;
	struct spawn_header head;

	if (len < sizeof head)
		return -1;
	memcpy(&head, data, sizeof head);
	if (head.version != SPAWN_VERSION)
		return -1;
	switch (head.op) {
	case SPAWN_CREATE:
		return on_create(d, peer, data, len);
	case SPAWN_DESTROY:
		return on_destroy(d, peer, data, len);
	default:
		break;
	}
	if (len != sizeof head)
		return -1;
	switch (head.op) {
	case SPAWN_LIST:
		on_list(d, peer, head.seq);
		return 0;
	case SPAWN_WATCH:
		peers_watch(d->peers, peer);
		return 0;
	case SPAWN_HOST:
		on_host(d, peer, head.seq);
		return 0;
	default:
		return -1;
	}
}
