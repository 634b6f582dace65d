/* make.h - the blocking work of a helper: making one sandbox, and taking one away. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_MAKE_H
#define ORCHARD_SPAWNER_MAKE_H

#include "base/cleanup.h"
#include "ipc/spawn_msg.h"
#include "spawner/image.h"

#include <stdint.h>
#include <sys/types.h>

struct err;
struct site;

struct make_order {
	struct spawn_create spec; /* checked */
	char digest[IMAGE_DIGEST_SIZE]; /* "oci:": the manifest */
	uint32_t slot; /* range of host ids */
	bool rehearsal; /* everything but the agent, and taken back at once */
	char env[SPAWN_ENV_MAX]; /* spec.env_len bytes */
};

struct make_result {
	pid_t pid;
	uint64_t pid_start;
};

/* Told as soon as there is a process to kill, should the caller die. */
typedef void make_started_f(const struct make_result *init, void *arg);
/* On failure everything is taken back. The init's parent is the caller's parent. */
int make_sandbox(const struct site *site, const struct make_order *order, make_started_f *started, void *arg,
	struct make_result *ret_result, struct err *err) MUSTCHECK;

struct unmake_order {
	char id[64];
	char uid[ID_UUID_SIZE];
	pid_t pid; /* 0: unknown */
	uint64_t pid_start;
};

/* Kills what runs, waits until it is gone, removes all of it (files: into the trash). Nothing there is fine. */
int unmake_sandbox(const struct site *site, const struct unmake_order *order, struct err *err) MUSTCHECK;

/* Deletes what lies in the trash; may take long. */
void unmake_sweep_trash(const struct site *site);

/* Tries what make_sandbox needs from this kernel and filesystem, without an agent. */
int make_probe(const struct site *site, struct err *err) MUSTCHECK;

#endif
