/*
 * sandbox_measure.c - a sandbox with what it takes of the host, for whoever looks at it.
 *
 * Whoever makes sandboxes on this host has it counted; what a pod takes, its agent is asked. Looking must not hang on
 * measuring: an answer that does not come at once is none, and so many may wait for one at a time.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/sandbox/sandbox_priv.h"
#include "domain/service_priv.h"
#include "backend/agent_client.h"
#include "backend/driver.h"
#include "base/alloc.h"
#include "base/err.h"

#include <event2/event.h>
#include <json-c/json.h>
#include <stdlib.h>

enum { WAIT_MS = 1000, AT_ONCE_MAX = 1024 };

/* One that the driver was asked for lives until that has called back, even if the asker was told long ago. */
struct sandbox_measuring {
	LIST_ENTRY(sandbox_measuring) link;
	struct service *service;
	struct event *timer;
	struct agent_call *call; /* NULL: the driver was asked */
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
	if (measuring->call != NULL)
		agent_call_cancel(measuring->call);
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

/* -1: the agent does not say it, or nonsense. */
static int64_t
told_count(struct json_object *body, const char *name)
{
	struct json_object *count;

	if (!json_object_object_get_ex(body, name, &count) || !json_object_is_type(count, json_type_int))
		return -1;
	return json_object_get_int64(count) >= 0 ? json_object_get_int64(count) : -1;
}

/* False: it says nothing of itself. */
static bool
usage_read(struct json_object *body, struct driver_usage *ret_usage)
{
	*ret_usage = (struct driver_usage){
		.cpu_us = told_count(body, "cpu_us"),
		.memory_bytes = told_count(body, "memory_bytes"),
		.memory_peak_bytes = told_count(body, "memory_peak_bytes"),
		.pids = told_count(body, "pids"),
		.disk_bytes = -1,
	};
	return ret_usage->cpu_us >= 0 || ret_usage->memory_bytes >= 0 || ret_usage->memory_peak_bytes >= 0 ||
		ret_usage->pids >= 0;
}

static void
on_agent_usage(const struct agent_answer *answer, void *arg)
{
	struct sandbox_measuring *measuring = arg;
	struct driver_usage usage;
	bool told = answer->outcome == AGENT_JOB && usage_read(answer->body, &usage);

	measuring->call = NULL;
	measuring_tell(measuring, told ? &usage : NULL);
	measuring_free(measuring);
}

static void
on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox_measuring *measuring = arg;

	(void)fd;
	(void)what;
	measuring_tell(measuring, NULL);
	if (measuring->call != NULL)
		measuring_free(measuring);
}

static void
ask_agent(struct sandbox_measuring *measuring, const struct sandbox_record *record)
{
	struct agent_target target = service_target(record);
	struct err err;

	if (agent_usage(measuring->service->agents, &target, WAIT_MS, on_agent_usage, measuring, &measuring->call,
		    &err) == 0)
		return;
	measuring_tell(measuring, NULL);
	measuring_free(measuring);
}

/* Nobody need be asked, or could be. */
static bool
is_unmeasured(const struct service *service, const struct sandbox_record *record)
{
	bool agent_tells = service->driver->ops->stat == NULL;

	return record->status != SANDBOX_READY || (agent_tells && !record->ready) ||
		service->measuring_count >= AT_ONCE_MAX;
}

void
sandbox_measure(struct service *service, const struct sandbox_record *record, sandbox_measured_f *done, void *arg)
{
	struct json_object *json = sandbox_json(service, record);
	struct sandbox_measuring *measuring;

	if (is_unmeasured(service, record)) {
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
	if (service->driver->ops->stat == NULL)
		ask_agent(measuring, record);
	else
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
