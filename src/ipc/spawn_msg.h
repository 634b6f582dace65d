/*
 * spawn_msg.h - what the others may ask of the spawner, the one privileged process.
 *
 * SOCK_SEQPACKET on run_dir/spawner.sock, one message a packet, plain structs of
 * one build on one host; the server checks the peer's uid, every length, every
 * string's NUL and every enum. A request has a `seq` that its answer repeats.
 * CREATE and DESTROY are idempotent by uid: asking again joins the work in
 * flight or tells its outcome, so a requester that died can be replaced.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SPAWN_MSG_H
#define ORCHARD_IPC_SPAWN_MSG_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPAWN_VERSION = 1 };

enum spawn_op {
	/* requests */
	SPAWN_CREATE = 1, /* struct spawn_create, then env_len bytes: NUL-terminated "NAME=value" strings */
	SPAWN_DESTROY, /* struct spawn_target */
	SPAWN_LIST, /* answered by SPAWN_ITEM..., then SPAWN_DONE */
	SPAWN_WATCH, /* from now on this peer gets SPAWN_GONE events */
	SPAWN_HOST, /* answered by struct spawn_host */
	/* answers and events */
	SPAWN_PROGRESS = 32, /* struct spawn_reply: status text of a create that is going on (image work) */
	SPAWN_DONE, /* struct spawn_reply: the end of a request */
	SPAWN_ITEM, /* struct spawn_item */
	SPAWN_GONE, /* struct spawn_item: that sandbox's agent has ended; seq 0 */
	SPAWN_HOST_INFO /* struct spawn_host */
};

struct spawn_header {
	uint32_t version;
	uint32_t op; /* enum spawn_op */
	uint64_t seq;
};

struct spawn_create {
	struct spawn_header head;
	char id[64];
	char uid[ID_UUID_SIZE];
	char token[ID_TOKEN_SIZE];
	char image[512]; /* "dir:/path", "oci:/path[:tag]"; already allowed for the caller */
	char working_dir[256]; /* "" : the image's WorkingDir, else / */
	bool block_network;
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t pids_max;
	uint32_t env_len; /* at most SPAWN_ENV_MAX */
};
enum { SPAWN_ENV_MAX = 64 * 1024 };

struct spawn_target {
	struct spawn_header head;
	char id[64];
	char uid[ID_UUID_SIZE];
};

struct spawn_reply {
	struct spawn_header head;
	int32_t code; /* enum err_code; ERR_NONE: fine */
	char message[512];
	int64_t pid; /* CREATE: the agent's pid in the outer namespace */
	uint64_t pid_start;
	char endpoint[108]; /* CREATE: "unix:/path" */
};

struct spawn_item {
	struct spawn_header head;
	char id[64];
	char uid[ID_UUID_SIZE];
	int64_t pid;
	uint64_t pid_start;
	int32_t wait_status; /* GONE: as of waitpid, or -1 when unknown */
	bool oom_killed; /* GONE: the memory limit killed something */
	bool alive;
};

/* What this host can do and has; NUL-terminated words for people. */
struct spawn_host {
	struct spawn_header head;
	bool usable; /* sandboxes can be made */
	char problem[512]; /* why not, and the cure */
	char cgroup_mode[16]; /* "v2", "v1", "hybrid", "none" */
	char missing[128]; /* limits that cannot be applied: "memory, pids" */
	int64_t cpu_milli;
	int64_t memory_bytes;
	uint32_t sandboxes;
	uint32_t creating;
};

#endif
