/*
 * runtime_bundle.h - config.json: a sandbox in the words of the OCI runtime specification.
 *
 * The same walls as those of our own making, from the same tables (conf/walls.h, wall_rules.h, covers.h).
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_RUNTIME_RUNTIME_BUNDLE_H
#define ORCHARD_RUNTIME_RUNTIME_BUNDLE_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct config;
struct err;
struct json_object;

/* Of the bundle's directory, besides config.json. */
#define BUNDLE_ROOT   "rootfs"
#define BUNDLE_DEV    "dev"
#define BUNDLE_RESOLV "resolv.conf"

struct runtime_bundle {
	const struct config *config;
	const char *dir; /* of the bundle, absolute */
	const char *id; /* host name; also the name of its cgroup, at the top of what the runtime sees */
	uint32_t first_id, ids; /* of the host, for 0 and up inside */
	uint64_t capabilities; /* of PID 1 */
	int64_t shm_bytes;
	int64_t nofile_max;
	bool network; /* else without resolv.conf */
	int program_fd; /* PID 1 executes what it finds open there */
	const char *const *args; /* behind the program; ended by NULL */
};

/* Owned by the caller. */
struct json_object *runtime_bundle_json(const struct runtime_bundle *bundle);
/* The part that denies system calls; NULL: sandbox_seccomp is off. */
struct json_object *runtime_seccomp_json(const struct config *config);
/* Writes config.json into the directory. */
int runtime_bundle_write(int dir_fd, const struct runtime_bundle *bundle, struct err *err) MUSTCHECK;

#endif
