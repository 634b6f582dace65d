/*
 * driver.h - who makes and removes sandboxes: one interface, asynchronous.
 *
 * Every call returns at once and calls back later, exactly once, unless the
 * driver is freed. create and destroy are idempotent by uid, so whoever takes a
 * record over from a dead process simply asks again.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BACKEND_DRIVER_H
#define ORCHARD_BACKEND_DRIVER_H

#include "base/cleanup.h"
#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct config;
struct driver;
struct err;
struct event_base;
struct json_object;

/* What to make; borrowed during the call. */
struct driver_spec {
	const char *id, *uid, *token;
	const char *image; /* resolved and allowed (driver_image_resolve) */
	const char *working_dir; /* "" : the image's */
	struct json_object *env; /* string map, or NULL */
	bool block_network;
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t pids_max;
};

struct driver_made {
	const char *endpoint;
	pid_t pid;
	uint64_t pid_start;
};

struct driver_item {
	const char *id, *uid;
	pid_t pid;
	uint64_t pid_start;
	bool alive;
	bool oom_killed;
	int wait_status; /* of one that has ended; -1 unknown */
};

struct driver_host {
	bool usable;
	const char *problem; /* why not, and the cure */
	const char *cgroup_mode, *missing;
	int64_t cpu_milli, memory_bytes;
	uint32_t sandboxes, creating;
};

/* why is NULL on success. */
typedef void driver_progress_f(const char *message, void *arg);
typedef void driver_created_f(const struct driver_made *made, const struct err *why, void *arg);
typedef void driver_done_f(const struct err *why, void *arg);
typedef void driver_item_f(const struct driver_item *item, void *arg);
typedef void driver_host_f(const struct driver_host *host, const struct err *why, void *arg);

struct driver_ops {
	const char *name;
	void (*create)(struct driver *driver, const struct driver_spec *spec, driver_progress_f *progress,
		driver_created_f *done, void *arg);
	void (*destroy)(struct driver *driver, const char *id, const char *uid, driver_done_f *done, void *arg);
	/* item for each sandbox that exists, then done; after an error the list is incomplete and proves nothing. */
	void (*list)(struct driver *driver, driver_item_f *item, driver_done_f *done, void *arg);
	/* From now on `gone` is called for each sandbox whose agent ends by itself. One watcher per process. */
	void (*watch)(struct driver *driver, driver_item_f *gone, void *arg);
	void (*host)(struct driver *driver, driver_host_f *done, void *arg);
	void (*free)(struct driver *driver);
};

struct driver {
	const struct driver_ops *ops;
};

/* Talks to the spawner on run_dir/spawner.sock; connects when needed, again when it was lost. */
int driver_local_create(struct event_base *base, const struct config *config, struct driver **ret_driver,
	struct err *err) MUSTCHECK;

/*
 * Turns what a client asked for ("default", "dir:/x", "oci:/x:tag") into what the driver takes.
 * ERR_INVALID with the cure when the form is unknown; ERR_DENIED when the path is not below local_image_paths.
 */
int driver_image_resolve(
	const struct config *config, const char *image, char *ret_image, size_t size, struct err *err) MUSTCHECK;

#endif
