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
struct egress;
struct err;
struct event_base;
struct json_object;

/* What to make; borrowed during the call. */
struct driver_spec {
	const char *id, *uid, *token;
	const char *line; /* whose it is while it waits for its turn: lines take turns */
	const char *tenant, *labels; /* for people; labels: a JSON object of strings, "": none */
	const char *image; /* resolved and allowed (driver_image_resolve) */
	const char *working_dir; /* "" : the image's */
	struct json_object *env; /* string map, or NULL */
	bool block_network; /* loopback only */
	const struct egress *egress; /* else: where to; NULL: the internet */
	int32_t cpu_milli;
	int64_t memory_bytes;
	int64_t disk_bytes; /* of its own files; 0: no limit */
	int64_t pids_max;
};

struct driver_made {
	const char *endpoint;
	pid_t pid;
	uint64_t pid_start;
	const char *other_uid; /* after ERR_EXISTS alone: the life that has the id */
};

struct driver_item {
	const char *id, *uid;
	pid_t pid;
	uint64_t pid_start;
	int64_t known_ms; /* in a list: how long the driver has known of it, at least */
	bool alive;
	bool oom_killed;
	int wait_status; /* of one that has ended; -1 unknown */
	const char *reason; /* why it ended, where the driver has words for it; else "" */
};

/* What a sandbox takes of the host; -1: not known. */
struct driver_usage {
	int64_t cpu_us; /* since it was made */
	int64_t memory_bytes, memory_peak_bytes;
	int64_t pids;
	int64_t disk_bytes; /* of its own files */
};

struct driver_host {
	bool usable;
	const char *problem; /* why not, and the cure */
	const char *cgroup_mode, *missing;
	int64_t cpu_milli, memory_bytes;
	uint32_t networks; /* sandboxes that can have one at a time; 0: no bound is known */
	uint32_t sandboxes, creating;
};

/* why is NULL on success, and made after a failure, but for ERR_EXISTS: then made holds other_uid and nothing else. */
/* unschedulable: nothing is done for it until some machine has room. */
typedef void driver_progress_f(const char *message, bool unschedulable, void *arg);
typedef void driver_created_f(const struct driver_made *made, const struct err *why, void *arg);
typedef void driver_done_f(const struct err *why, void *arg);
typedef void driver_item_f(const struct driver_item *item, void *arg);
typedef void driver_usage_f(const struct driver_usage *usage, const struct err *why, void *arg);
/* resources: owned by who is called; NULL: why says so. */
typedef void driver_resources_f(struct json_object *resources, const struct err *why, void *arg);
typedef void driver_host_f(const struct driver_host *host, const struct err *why, void *arg);

struct driver_ops {
	const char *name;
	void (*create)(struct driver *driver, const struct driver_spec *spec, driver_progress_f *progress,
		driver_created_f *done, void *arg);
	void (*destroy)(struct driver *driver, const char *id, const char *uid, driver_done_f *done, void *arg);
	/* item for each sandbox that exists, then done; after an error the list is incomplete and proves nothing. */
	void (*list)(struct driver *driver, driver_item_f *item, driver_done_f *done, void *arg);
	/*
	 * From now on `gone` is called for each sandbox whose agent ends by itself, and, with `alive`, for each whose machine
	 * is not heard of. One watcher per process.
	 */
	void (*watch)(struct driver *driver, driver_item_f *gone, void *arg);
	void (*host)(struct driver *driver, driver_host_f *done, void *arg);
	/* The body of GET /resources, where sandboxes have more than this host; NULL: they have not. */
	void (*resources)(struct driver *driver, driver_resources_f *done, void *arg);
	/*
	 * ERR_NOT_FOUND when there is no such sandbox. Nobody should wait long for this: it is not asked again. NULL: only a
	 * sandbox's agent can tell.
	 */
	void (*stat)(struct driver *driver, const char *id, const char *uid, driver_usage_f *done, void *arg);
	/* Has the image (resolved) fetched and kept; first: of a list that takes the place of the one before. "": none. */
	void (*prefetch)(struct driver *driver, const char *image, bool first);
	void (*free)(struct driver *driver);
};

struct driver {
	const struct driver_ops *ops;
};

/*
 * Talks to the process that makes sandboxes (the spawner, or the controller), on run_dir/spawner.sock; connects when
 * needed, again when it was lost.
 */
int driver_asker_create(struct event_base *base, const struct config *config, struct driver **ret_driver,
	struct err *err) MUSTCHECK;

/*
 * Turns what a client asked for ("default", "dir:/x", "oci:/x:tag", "python:3.11") into what the driver takes; names
 * of registries become "docker://registry/path:tag", but for nodes of a cluster, who have rules of their own for them. ERR_INVALID with the cure when it means nothing; ERR_DENIED when
 * local_image_paths or image_registries do not allow it. What default_image and image_prefetch name is always allowed.
 */
int driver_image_resolve(
	const struct config *config, const char *image, char *ret_image, size_t size, struct err *err) MUSTCHECK;

#endif
