/* make.h - the blocking work of a helper: making one sandbox, and taking one away. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_MAKE_H
#define ORCHARD_SPAWNER_MAKE_H

#include "base/cleanup.h"
#include "ipc/spawn_msg.h"
#include "image/image.h"
#include "network/net.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct blank;
struct err;
struct site;

/* What is made ahead of need, see blank.h. */
struct blank_order {
	char name[64]; /* "-" and a uid: of its groups and its directory; no sandbox can be called so */
	uint32_t slot;
	char image[sizeof((struct spawn_create *)NULL)->image]; /* what it gets a root of; "": of none */
	char digest[IMAGE_DIGEST_SIZE];
};

struct make_order {
	struct spawn_create spec; /* checked */
	char digest[IMAGE_DIGEST_SIZE]; /* "oci:": the manifest */
	uint32_t slot; /* range of host ids */
	struct net_grant net;
	bool rehearsal; /* everything but the agent, and taken back at once */
	bool use_blank; /* the caller's last blank, which has that slot; it may have died meanwhile */
	char group[64]; /* name of its control groups; use_blank: the blank's, else its id */
	char env[]; /* spec.env_len bytes, at most SPAWN_ENV_MAX */
};

enum make_step {
	MAKE_WAIT, /* in line, and for words to arrive */
	MAKE_FILES,
	MAKE_SOCKET,
	MAKE_CGROUPS,
	MAKE_NAMESPACES,
	MAKE_ROOT, /* ids, network, layers */
	MAKE_INIT, /* the own steps of the init up to its exec; or all that an OCI runtime does */
	MAKE_RECORD,
	MAKE_STEPS
};

struct make_result {
	pid_t pid; /* of a making that went well, or whose remains are still there */
	uint64_t pid_start;
	bool remains; /* it failed, and not all of it could be taken back */
	int64_t step_us[MAKE_STEPS]; /* of a making that went well */
};

/* Told as soon as there is a process to kill, should the caller die. */
typedef void make_started_f(const struct make_result *init, void *arg);
/*
 * blank: becomes the sandbox, or goes with it; NULL: none.
 * On failure everything is taken back, or ret_result says that it could not be. The init's parent is the caller's parent.
 */
int make_sandbox(const struct site *site, const struct make_order *order, struct blank *blank,
	make_started_f *started, void *arg, struct make_result *ret_result, struct err *err) MUSTCHECK;

/* What of it nobody has to wait for; after every make_sandbox (made->pid 0: it failed), before the next. */
void make_settle(const struct site *site, const struct make_order *order, const struct make_result *made);

/* The same for one that an earlier spawner has made and may not have come to. Once more does no harm. */
void make_settle_adopted(const struct site *site, const char *group, pid_t pid, uint64_t pid_start);

struct unmake_order {
	char id[64];
	char group[64]; /* of its control groups */
	char uid[ID_UUID_SIZE];
	pid_t pid; /* 0: unknown */
	uint64_t pid_start;
	struct net_grant net;
};

/* Kills what runs, waits until it is gone, removes all of it (files: into the trash). Nothing there is fine. */
int unmake_sandbox(const struct site *site, const struct unmake_order *order, struct err *err) MUSTCHECK;

/* Whose trash it is, when several share the work. */
struct unmake_share {
	unsigned number, of;
};
unsigned unmake_share_of(const char *uid, unsigned of);

/* Deletes what lies in the trash, and is in that share; may take long. */
void unmake_sweep_trash(const struct site *site, const struct unmake_share *share);

/* Tries what make_sandbox needs from this kernel and filesystem, without an agent. */
int make_probe(const struct site *site, struct err *err) MUSTCHECK;

#endif
