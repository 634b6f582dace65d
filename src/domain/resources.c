/*
 * resources.c - is this host fit to serve, and what does it have to give?
 *
 * The driver is asked each time; an answer that does not come in time is an answer
 * too. A cluster's lists may take longer than a look at this host.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/resources.h"
#include "domain/service_priv.h"
#include "backend/driver.h"
#include "base/alloc.h"
#include "base/err.h"
#include "conf/config.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOST_TIMEOUT_MS = 2000, LISTS_TIMEOUT_MS = 10000 };

typedef void
host_answer_f(struct service *service, const struct driver_host *host, const struct err *why, void *arg);

/* One question to the driver. It lives until the driver has called back, even if the asker was told long ago. */
struct host_ask {
	LIST_ENTRY(host_ask) link;
	struct service *service;
	struct event *timer;
	int64_t timeout_ms;
	host_answer_f *answer; /* NULL: told already */
	union {
		service_ready_f *ready;
		service_resources_f *resources;
	} done;
	void *arg;
};

static void
host_ask_free(struct host_ask *ask)
{
	LIST_REMOVE(ask, link);
	event_free(ask->timer);
	free(ask);
}

void
host_ask_free_all(struct service *service)
{
	struct host_ask *ask;

	while ((ask = LIST_FIRST(&service->host_asks)) != NULL)
		host_ask_free(ask);
}

static void
host_ask_tell(struct host_ask *ask, const struct driver_host *host, const struct err *why)
{
	host_answer_f *answer = ask->answer;

	event_del(ask->timer);
	ask->answer = NULL;
	if (answer != NULL)
		answer(ask->service, host, why, ask);
}

static void
host_on_answer(const struct driver_host *host, const struct err *why, void *arg)
{
	struct host_ask *ask = arg;

	if (why == NULL) {
		ask->service->host_cpu_milli = host->cpu_milli;
		ask->service->host_memory_bytes = host->memory_bytes;
		ask->service->host_networks = host->networks;
	}
	host_ask_tell(ask, host, why);
	host_ask_free(ask);
}

static void
host_on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct host_ask *ask = arg;
	struct err err;

	(void)fd;
	(void)what;
	err_set(&err, ERR_UNAVAILABLE, "the %s driver did not answer within %d s", ask->service->driver->ops->name,
		(int)(ask->timeout_ms / 1000));
	host_ask_tell(ask, NULL, &err);
}

static struct host_ask *
host_ask_new(struct service *service, int64_t timeout_ms, host_answer_f *answer, void *arg)
{
	struct host_ask *ask = alloc_zero(1, sizeof *ask);

	ask->service = service;
	ask->answer = answer;
	ask->arg = arg;
	ask->timer = service_timer(service, host_on_timeout, ask);
	ask->timeout_ms = timeout_ms;
	service_timer_set(ask->timer, timeout_ms);
	LIST_INSERT_HEAD(&service->host_asks, ask, link);
	return ask;
}

static void
host_ask_send(struct host_ask *ask)
{
	struct driver *driver = ask->service->driver;

	driver->ops->host(driver, host_on_answer, ask);
}

void
service_learn_host(struct service *service)
{
	host_ask_send(host_ask_new(service, HOST_TIMEOUT_MS, NULL, NULL));
}

/* --- ready? --- */

/* On a disk that has failed, access() may still say yes. */
static bool
can_write(const struct service *service, const char *name)
{
	char dir[PATH_MAX];
	AUTO_FD fd = -1;

	if (snprintf(dir, sizeof dir, "%s/%s", service->config->state_dir, name) >= (int)sizeof dir ||
		access(dir, W_OK | X_OK) != 0)
		return false;
	fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return fd >= 0 || errno == EOPNOTSUPP;
}

static void
ready_on_host(struct service *service, const struct driver_host *host, const struct err *why, void *arg)
{
	struct host_ask *ask = arg;
	char problems[2048] = "";
	size_t used = 0;

	if (why != NULL)
		used = (size_t)snprintf(problems, sizeof problems, "%s\n", why->msg);
	else if (!host->usable)
		used = (size_t)snprintf(problems, sizeof problems, "%s\n", host->problem);
	if (!can_write(service, "jobs") || !can_write(service, "keys"))
		used += (size_t)snprintf(problems + used, sizeof problems - used,
			"job results cannot be written below state_dir (%.256s)\n", service->config->state_dir);
	if (used > 0)
		problems[used - 1] = '\0';
	ask->done.ready(used == 0, problems, ask->arg);
}

void
service_check_ready(struct service *service, service_ready_f *done, void *arg)
{
	struct host_ask *ask = host_ask_new(service, HOST_TIMEOUT_MS, ready_on_host, arg);

	ask->done.ready = done;
	host_ask_send(ask);
}

/* --- GET /resources --- */

static struct json_object *
amount_json(int64_t cpu_milli, int64_t memory_bytes)
{
	struct json_object *amount = json_object_new_object();

	json_object_object_add(amount, "cpu", json_object_new_double((double)cpu_milli / 1000));
	json_object_object_add(amount, "memory_bytes", json_object_new_int64(memory_bytes));
	return amount;
}

static struct json_object *
pod_json(const struct service *service, const struct sandbox_record *record)
{
	struct json_object *pod = json_object_new_object();
	char name[sizeof "sandbox-" + SANDBOX_ID_SIZE];
	const char *phase = "Running";

	if (sandbox_is_being_made(record))
		phase = "Pending";
	else if (record->status == SANDBOX_FAILED)
		phase = "Failed";
	snprintf(name, sizeof name, "sandbox-%s", record->id);
	json_object_object_add(pod, "name", json_object_new_string(name));
	json_object_object_add(pod, "namespace", json_object_new_string(service_namespace(service)));
	json_object_object_add(pod, "phase", json_object_new_string(phase));
	json_object_object_add(pod, "cpu_request", json_object_new_double((double)record->cpu_milli / 1000));
	json_object_object_add(pod, "memory_request_bytes", json_object_new_int64(record->memory_bytes));
	return pod;
}

/* Adds up what live sandboxes have asked for. */
static struct json_object *
pods_json(struct service *service, int64_t *ret_cpu_milli, int64_t *ret_memory_bytes)
{
	struct json_object *pods = json_object_new_array();
	uint32_t bound = sandbox_table_bound(service_sandboxes(service));
	struct sandbox_record record;

	*ret_cpu_milli = *ret_memory_bytes = 0;
	for (uint32_t slot = 0; slot < bound; slot++) {
		if (!sandbox_table_read(service_sandboxes(service), slot, &record) ||
			record.status == SANDBOX_DOUBTFUL || sandbox_is_foreign(&record))
			continue;
		json_object_array_add(pods, pod_json(service, &record));
		if (record.status == SANDBOX_FAILED)
			continue;
		*ret_cpu_milli += record.cpu_milli;
		if (__builtin_add_overflow(*ret_memory_bytes, record.memory_bytes, ret_memory_bytes))
			*ret_memory_bytes = INT64_MAX;
	}
	return pods;
}

static int64_t
amount_left(int64_t all, int64_t used)
{
	return used < all ? all - used : 0;
}

static struct json_object *
node_json(const struct driver_host *host)
{
	struct json_object *node = json_object_new_object();
	char name[HOST_NAME_MAX + 1] = "localhost";

	gethostname(name, sizeof name - 1);
	json_object_object_add(node, "name", json_object_new_string(name));
	json_object_object_add(node, "capacity", amount_json(host->cpu_milli, host->memory_bytes));
	json_object_object_add(node, "allocatable", amount_json(host->cpu_milli, host->memory_bytes));
	return node;
}

static void
resources_on_host(struct service *service, const struct driver_host *host, const struct err *why, void *arg)
{
	struct host_ask *ask = arg;
	struct json_object *body, *nodes, *pods;
	int64_t cpu, memory;

	if (why != NULL) {
		ask->done.resources(NULL, why, ask->arg);
		return;
	}
	body = json_object_new_object();
	nodes = json_object_new_array();
	pods = pods_json(service, &cpu, &memory);
	json_object_array_add(nodes, node_json(host));
	json_object_object_add(body, "status", json_object_new_string("ok"));
	json_object_object_add(body, "nodes", nodes);
	json_object_object_add(body, "total_capacity", amount_json(host->cpu_milli, host->memory_bytes));
	json_object_object_add(body, "total_allocatable", amount_json(host->cpu_milli, host->memory_bytes));
	json_object_object_add(body, "total_requested", amount_json(cpu, memory));
	json_object_object_add(body, "available",
		amount_json(amount_left(host->cpu_milli, cpu), amount_left(host->memory_bytes, memory)));
	json_object_object_add(body, "sandbox_pods", pods);
	ask->done.resources(body, NULL, ask->arg);
}

/* The driver has it all: more than one host's, or another's. */
static void
resources_on_lists(struct json_object *resources, const struct err *why, void *arg)
{
	struct host_ask *ask = arg;

	if (ask->answer == NULL)
		json_object_put(resources);
	else if (why != NULL)
		host_ask_tell(ask, NULL, why);
	else
		ask->done.resources(resources, NULL, ask->arg);
	host_ask_free(ask);
}

void
service_resources(struct service *service, service_resources_f *done, void *arg)
{
	struct driver *driver = service->driver;
	bool has_lists = driver->ops->resources != NULL;
	struct host_ask *ask = host_ask_new(
		service, has_lists ? LISTS_TIMEOUT_MS : HOST_TIMEOUT_MS, resources_on_host, arg);

	ask->done.resources = done;
	if (has_lists)
		driver->ops->resources(driver, resources_on_lists, ask);
	else
		host_ask_send(ask);
}
