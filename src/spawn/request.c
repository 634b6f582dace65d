/*
 * spawn_request.c - from bytes to a request, and from an outcome to a reply.
 *
 * What has the wrong shape comes from no peer of this build, and ends its connection; what has the right shape and
 * asks for something senseless is refused in words.
 */
/* SPDX-License-Identifier: MIT */
#include "spawn/request.h"

#include "base/err.h"
#include "base/id.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIDS_MIN = 4 };
#define MEMORY_MIN (8LL << 20)

size_t
spawn_request_max(void)
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

static bool
is_flag(const bool *value)
{
	unsigned char byte;

	memcpy(&byte, value, sizeof byte); /* any other value is no bool */
	return byte <= 1;
}

static bool
egress_is_formed(const struct egress *egress)
{
	if (!is_flag(&egress->limited) || egress->count > EGRESS_MAX)
		return false;
	for (uint32_t i = 0; i < egress->count; i++) {
		if (!ip_dest_is_formed(&egress->allow[i]))
			return false;
	}
	return true;
}

/* A shape that no honest peer sends; false: drop it. */
static bool
create_is_formed(const struct spawn_create *spec, size_t len)
{
	return is_flag(&spec->block_network) && egress_is_formed(&spec->egress) &&
		is_ended(spec->id, sizeof spec->id) && is_ended(spec->uid, sizeof spec->uid) &&
		is_ended(spec->token, sizeof spec->token) && is_ended(spec->tenant, sizeof spec->tenant) &&
		is_ended(spec->line, sizeof spec->line) && is_ended(spec->labels, sizeof spec->labels) &&
		is_ended(spec->image, sizeof spec->image) &&
		is_ended(spec->working_dir, sizeof spec->working_dir) && spec->env_len <= SPAWN_ENV_MAX &&
		len == sizeof *spec + spec->env_len;
}

static int
create_check(const struct spawn_create *spec, const char *env, struct err *err)
{
	if (!id_is_sandbox_id(spec->id) || !id_is_uuid(spec->uid) || spec->token[0] == '\0')
		return err_set(err, ERR_INVALID, "sandbox id, uid or token is malformed");
	if (spec->cpu_milli <= 0)
		return err_set(err, ERR_INVALID, "cpu must be at least 0.001 cores");
	if (spec->memory_bytes < MEMORY_MIN)
		return err_set(err, ERR_INVALID, "memory must be at least %lld bytes", MEMORY_MIN);
	if (spec->disk_bytes != 0 && spec->disk_bytes < SPAWN_DISK_MIN)
		return err_set(err, ERR_INVALID, "disk must be at least %d bytes, or 0", SPAWN_DISK_MIN);
	if (spec->pids_max < PIDS_MIN || spec->pids_max > INT_MAX)
		return err_set(err, ERR_INVALID, "the pids limit must be at least %d", PIDS_MIN);
	if (spec->working_dir[0] != '\0' && spec->working_dir[0] != '/')
		return err_set(err, ERR_INVALID, "working_dir must be an absolute path");
	if (!is_env(env, spec->env_len))
		return err_set(err, ERR_INVALID, "env must be NAME=value strings");
	return 0;
}

static int
read_create(const struct spawn_server *server, uint64_t peer, const void *data, size_t len, void *arg)
{
	struct spawn_create spec;
	const char *env = (const char *)data + sizeof spec;
	struct err err;

	if (len < sizeof spec || len > spawn_request_max())
		return -1;
	memcpy(&spec, data, sizeof spec);
	if (!create_is_formed(&spec, len))
		return -1;
	if (create_check(&spec, env, &err) == 0)
		server->create(&spec, env, peer, arg);
	else
		server->refuse(peer, spec.head.seq, &err, arg);
	return 0;
}

static int
read_target(spawn_target_f *act, uint64_t peer, const void *data, size_t len, void *arg)
{
	struct spawn_target target;

	if (act == NULL || len != sizeof target)
		return -1;
	memcpy(&target, data, sizeof target);
	if (!is_ended(target.id, sizeof target.id) || !is_ended(target.uid, sizeof target.uid))
		return -1;
	act(&target, peer, arg);
	return 0;
}

static int
read_prefetch(const struct spawn_server *server, uint64_t peer, const void *data, size_t len, void *arg)
{
	struct spawn_prefetch order;

	if (len != sizeof order)
		return -1;
	memcpy(&order, data, sizeof order);
	if (!is_flag(&order.first) || !is_ended(order.image, sizeof order.image))
		return -1;
	server->prefetch(&order, peer, arg);
	return 0;
}

static int
read_plain(spawn_plain_f *act, uint64_t peer, const struct spawn_header *head, size_t len, void *arg)
{
	if (act == NULL || len != sizeof *head)
		return -1;
	act(peer, head->seq, arg);
	return 0;
}

int
spawn_request_read(const struct spawn_server *server, uint64_t peer, const void *data, size_t len, void *arg)
{
	struct spawn_header head;

	if (len < sizeof head)
		return -1;
	memcpy(&head, data, sizeof head);
	if (head.version != SPAWN_VERSION)
		return -1;
	switch (head.op) {
	case SPAWN_CREATE:
		return read_create(server, peer, data, len, arg);
	case SPAWN_DESTROY:
		return read_target(server->destroy, peer, data, len, arg);
	case SPAWN_PREFETCH:
		return read_prefetch(server, peer, data, len, arg);
	case SPAWN_STAT:
		return read_target(server->stat, peer, data, len, arg);
	case SPAWN_LIST:
		return read_plain(server->list, peer, &head, len, arg);
	case SPAWN_HOST:
		return read_plain(server->host, peer, &head, len, arg);
	case SPAWN_WATCH:
		return read_plain(server->watch, peer, &head, len, arg);
	case SPAWN_RESOURCES:
		return read_plain(server->resources, peer, &head, len, arg);
	default:
		return -1;
	}
}

void
spawn_reply_fill(struct spawn_reply *reply, enum spawn_op op, uint64_t seq, const struct err *why)
{
	memset(reply, 0, sizeof *reply);
	reply->head = (struct spawn_header){ SPAWN_VERSION, op, seq };
	if (why == NULL)
		return;
	reply->code = why->code;
	snprintf(reply->message, sizeof reply->message, "%s", why->msg);
}
