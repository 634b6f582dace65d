/*
 * sandbox_measure.c - a sandbox with what it takes of the host, for whoever looks at it.
 *
 * Looking must not hang on measuring: an answer that does not come at once is none,
 * and so many may wait for one at a time.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/driver.h"
#include "base/alloc.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdlib.h>

enum { WAIT_MS = 1000, AT_ONCE_MAX = 1024 };

/* It lives until the driver has called back, even if the asker was told long ago. */
struct sandbox_measuring {
	LIST_ENTRY(sandbox_measuring) link;
	struct service *service;
	struct event *timer;
	struct json_object *json; /* NULL: told already */
	sandbox_measured_f *done;
	void *arg;
};

static void
add_count(struct json_object *object, const char *name, int64_t count)
{
	json_object_object_add(object, name, count >= 0 ? json_object_new_int64(count) : NULL);
}

static struct json_object *
usage_json(const struct driver_usage *usage)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(
		object, "cpu_s", usage->cpu_us >= 0 ? json_object_new_double((double)usage->cpu_us / 1e6) : NULL);
	add_count(object, "memory_bytes", usage->memory_bytes);
	add_count(object, "memory_peak_bytes", usage->memory_peak_bytes);
	add_count(object, "pids", usage->pids);
	add_count(object, "disk_bytes", usage->disk_bytes);
	return object;
}

/* usage NULL: not known. */
static void
tell(struct json_object *json, const struct driver_usage *usage, sandbox_measured_f *done, void *arg)
{
	json_object_object_add(json, "usage", usage != NULL ? usage_json(usage) : NULL);
	done(json, arg);
}

static void
measuring_tell(struct sandbox_measuring *measuring, const struct driver_usage *usage)
{
	struct json_object *json = measuring->json;

	measuring->json = NULL;
	if (json != NULL)
		tell(json, usage, measuring->done, measuring->arg);
}

static void
measuring_free(struct sandbox_measuring *measuring)
{
	measuring->service->measuring_count--;
	LIST_REMOVE(measuring, link);
	event_free(measuring->timer);
	free(measuring);
}

static void
on_usage(const struct driver_usage *usage, const struct err *why, void *arg)
{
	struct sandbox_measuring *measuring = arg;

	measuring_tell(measuring, why == NULL ? usage : NULL);
	measuring_free(measuring);
}

static void
on_timeout(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	measuring_tell(arg, NULL);
}

void
sandbox_measure(struct service *service, const struct sandbox_record *record, sandbox_measured_f *done, void *arg)
{
	struct json_object *json = sandbox_json(service, record);
	struct sandbox_measuring *measuring;

	if (record->status != SANDBOX_READY || service->measuring_count >= AT_ONCE_MAX) {
		tell(json, NULL, done, arg);
		return;
	}
	measuring = alloc_zero(1, sizeof *measuring);
	measuring->service = service;
	measuring->json = json;
	measuring->done = done;
	measuring->arg = arg;
	measuring->timer = service_timer(service, on_timeout, measuring);
	service_timer_set(measuring->timer, WAIT_MS);
	LIST_INSERT_HEAD(&service->measurings, measuring, link);
	service->measuring_count++;
	service->driver->ops->stat(service->driver, record->id, record->uid, on_usage, measuring);
}

void
sandbox_measure_end_all(struct service *service)
{
	struct sandbox_measuring *measuring;

	while ((measuring = LIST_FIRST(&service->measurings)) != NULL) {
		measuring_tell(measuring, NULL);
		measuring_free(measuring);
	}
}
