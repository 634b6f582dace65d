/*
 * spawn_msg.h - what the others may ask of the process that makes sandboxes: the spawner, or the controller.
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
#include "ipc/egress.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPAWN_VERSION = 9 };

enum spawn_op {
	/* requests */
	SPAWN_CREATE = 1, /* struct spawn_create, then env_len bytes: NUL-terminated "NAME=value" strings */
	SPAWN_DESTROY, /* struct spawn_target */
	SPAWN_LIST, /* answered by SPAWN_ITEM..., then SPAWN_DONE */
	SPAWN_WATCH, /* from now on this peer gets SPAWN_GONE and SPAWN_SILENT events */
	SPAWN_HOST, /* answered by struct spawn_host */
	SPAWN_PREFETCH, /* struct spawn_prefetch; SPAWN_DONE: it is being looked after */
	SPAWN_STAT, /* of a spawner alone: struct spawn_target, answered by struct spawn_usage; SPAWN_DONE: it is not there */
	SPAWN_RESOURCES, /* of a controller alone: answered by SPAWN_PIECE..., then SPAWN_DONE */
	/* answers and events */
	SPAWN_PROGRESS = 32, /* struct spawn_reply: how far a create that is going on has come */
	SPAWN_DONE, /* struct spawn_reply: the end of a request */
	SPAWN_ITEM, /* struct spawn_item */
	SPAWN_GONE, /* struct spawn_item: that sandbox's agent has ended; seq 0 */
	SPAWN_HOST_INFO, /* struct spawn_host */
	SPAWN_USAGE, /* struct spawn_usage */
	SPAWN_PIECE, /* struct spawn_piece */
	SPAWN_SILENT /* to whoever watches, struct spawn_item: its machine is not heard of, as reason says; seq 0 */
};

/* What a create that is going on waits for. */
enum spawn_wait {
	SPAWN_WAIT_WORK, /* somebody is at it */
	SPAWN_WAIT_PLACE /* no machine has room for it now */
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
	char tenant[32]; /* whose it is, for people */
	char line[64]; /* with which others it waits for its turn */
	char labels[1024]; /* as its owner sees them: a JSON object of strings; "": none */
	char image[512]; /* as driver_image_resolve makes it: already allowed for the caller */
	char working_dir[256]; /* "" : the image's WorkingDir, else / */
	bool block_network;
	struct egress egress; /* unless block_network */
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t disk_bytes; /* 0: no limit */
	int64_t pids_max;
	uint32_t env_len; /* at most SPAWN_ENV_MAX */
};
enum { SPAWN_ENV_MAX = 64 * 1024, SPAWN_DISK_MIN = 1 << 20, SPAWN_MEMORY_MIN = 8 << 20 };

struct spawn_target {
	struct spawn_header head;
	char id[64];
	char uid[ID_UUID_SIZE];
};

/* An image that is to be here before somebody asks for it, and to stay. */
struct spawn_prefetch {
	struct spawn_header head;
	bool first; /* of a list: those of the list before are not kept any longer */
	char image[512]; /* "": none, the list is empty */
};

struct spawn_reply {
	struct spawn_header head;
	int32_t code; /* enum err_code; ERR_NONE: fine */
	char message[512];
	uint32_t wait; /* PROGRESS: enum spawn_wait */
	int64_t pid; /* CREATE: the agent's pid in the outer namespace */
	uint64_t pid_start;
	char endpoint[108]; /* CREATE: "unix:/path" or "tcp:ip:port" */
	char other_uid[ID_UUID_SIZE]; /* CREATE that ends with ERR_EXISTS: the life that has the id here */
};

struct spawn_item {
	struct spawn_header head;
	char id[64];
	char uid[ID_UUID_SIZE];
	int64_t pid;
	uint64_t pid_start;
	int64_t known_ms; /* ITEM: how long it has been known of */
	int32_t wait_status; /* GONE: as of waitpid, or -1 when unknown */
	bool oom_killed; /* GONE: the memory limit killed something */
	bool alive;
	char reason[384]; /* GONE: why it ended, in words; "": as wait_status and oom_killed say. SILENT: why */
};

/* What a sandbox takes of the host; -1: not known here. */
struct spawn_usage {
	struct spawn_header head;
	int64_t cpu_us; /* since it was made */
	int64_t memory_bytes; /* as its limit counts it, with what the kernel caches for it */
	int64_t memory_peak_bytes;
	int64_t pids; /* with its agent */
	int64_t disk_bytes;
};

/* The next part of a JSON text: the body of GET /resources. */
enum { SPAWN_PIECE_SIZE = 8000 };
struct spawn_piece {
	struct spawn_header head;
	uint32_t len;
	char text[SPAWN_PIECE_SIZE];
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
	uint32_t networks; /* sandboxes that can have one at a time; 0: none can */
	uint32_t sandboxes;
	uint32_t creating;
};

#endif
