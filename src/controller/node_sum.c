/* node_sum.c - sums that stop at their bounds, of amounts that anybody may have written. */
/* SPDX-License-Identifier: MIT */
#include "controller/node_sum.h"

#include "base/alloc.h"
#include "base/quantity.h"
#include "conf/config.h"
#include "controller/pod_read.h"
#include "controller/pod_rules.h"
#include "controller/pod_spec.h"
#include "controller/pod_write.h"

#include <json-c/json.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct amount {
	int64_t cpu_milli, memory_bytes;
};

struct node_sum {
	struct json_object *selector; /* names and values of labels */
	struct json_object *nodes, *pods;
	struct amount capacity, allocatable, requested;
};

static int64_t
add(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void
amount_add(struct amount *sum, struct amount more)
{
	sum->cpu_milli = add(sum->cpu_milli, more.cpu_milli);
	sum->memory_bytes = add(sum->memory_bytes, more.memory_bytes);
}

static void
amount_raise(struct amount *sum, struct amount least)
{
	if (sum->cpu_milli < least.cpu_milli)
		sum->cpu_milli = least.cpu_milli;
	if (sum->memory_bytes < least.memory_bytes)
		sum->memory_bytes = least.memory_bytes;
}

static struct amount
amount_read(struct json_object *resources)
{
	return (struct amount){ .cpu_milli = quantity_amount(pod_read_text(resources, "cpu"), 3),
		.memory_bytes = quantity_amount(pod_read_text(resources, "memory"), 0) };
}

static struct json_object *
amount_json(struct amount amount)
{
	struct json_object *made = pod_write_object();

	pod_write_in(made, "cpu", json_object_new_double((double)amount.cpu_milli / 1000));
	return pod_write_int(made, "memory_bytes", amount.memory_bytes);
}

struct node_sum *
node_sum_create(const struct config *config)
{
	struct node_sum *sum = alloc_zero(1, sizeof *sum);

	sum->selector = pod_rules_labels(&config->pod_node_selector);
	sum->nodes = pod_write_array();
	sum->pods = pod_write_array();
	return sum;
}

void
node_sum_free(struct node_sum *sum)
{
	if (sum == NULL)
		return;
	json_object_put(sum->selector);
	json_object_put(sum->nodes);
	json_object_put(sum->pods);
	free(sum);
}

void
node_sum_drop_nodes(struct node_sum *sum)
{
	json_object_put(sum->nodes);
	sum->nodes = pod_write_array();
	sum->capacity = sum->allocatable = (struct amount){ 0 };
}

void
node_sum_drop_pods(struct node_sum *sum)
{
	json_object_put(sum->pods);
	sum->pods = pod_write_array();
	sum->requested = (struct amount){ 0 };
}

static bool
is_selected(const struct node_sum *sum, struct json_object *labels)
{
	json_object_object_foreach(sum->selector, name, value)
	{
		if (strcmp(pod_read_text(labels, name), json_object_get_string(value)) != 0)
			return false;
	}
	return true;
}

static bool
takes_pods(struct json_object *node)
{
	struct json_object *conditions = pod_read_array(pod_read_object(node, "status"), "conditions");

	return !pod_read_bool(pod_read_object(node, "spec"), "unschedulable") &&
		strcmp(pod_read_text(pod_read_find(conditions, "type", "Ready"), "status"), "True") == 0;
}

void
node_sum_node(struct node_sum *sum, struct json_object *node)
{
	struct json_object *metadata = pod_read_object(node, "metadata"), *status = pod_read_object(node, "status");
	struct amount capacity = amount_read(pod_read_object(status, "capacity")), allocatable = { 0 };
	struct json_object *item;

	if (!is_selected(sum, pod_read_object(metadata, "labels")))
		return;
	if (takes_pods(node))
		allocatable = amount_read(pod_read_object(status, "allocatable"));
	amount_add(&sum->capacity, capacity);
	amount_add(&sum->allocatable, allocatable);
	item = pod_write_item(sum->nodes, pod_write_object());
	pod_write_text(item, "name", pod_read_text(metadata, "name"));
	pod_write_in(item, "capacity", amount_json(capacity));
	pod_write_in(item, "allocatable", amount_json(allocatable));
}

static struct amount
request_of(struct json_object *container)
{
	return amount_read(pod_read_object(pod_read_object(container, "resources"), "requests"));
}

/*
 * As the scheduler counts: all containers together, or what is needed before them if that is more. Init containers that go
 * on beside the containers count with both.
 */
static struct amount
pod_requests(struct json_object *spec)
{
	struct json_object *inits = pod_read_array(spec, "initContainers"),
			   *list = pod_read_array(spec, "containers");
	struct amount sum = { 0 }, beside = { 0 }, before = { 0 };

	for (size_t i = 0; inits != NULL && i < json_object_array_length(inits); i++) {
		struct json_object *container = json_object_array_get_idx(inits, i);
		struct amount now = request_of(container);

		amount_add(&now, beside);
		amount_raise(&before, now);
		if (strcmp(pod_read_text(container, "restartPolicy"), "Always") == 0)
			beside = now;
	}
	for (size_t i = 0; list != NULL && i < json_object_array_length(list); i++)
		amount_add(&sum, request_of(json_object_array_get_idx(list, i)));
	amount_add(&sum, beside);
	amount_raise(&sum, before);
	amount_add(&sum, amount_read(pod_read_object(spec, "overhead")));
	return sum;
}

void
node_sum_pod(struct node_sum *sum, struct json_object *pod)
{
	struct json_object *metadata = pod_read_object(pod, "metadata"), *item;
	const char *phase = pod_read_text(pod_read_object(pod, "status"), "phase");
	struct amount requests = pod_requests(pod_read_object(pod, "spec"));

	if (strcmp(pod_read_text(pod_read_object(metadata, "labels"), POD_SPEC_LABEL_APP), POD_SPEC_APP) != 0)
		return;
	item = pod_write_item(sum->pods, pod_write_object());
	pod_write_text(item, "name", pod_read_text(metadata, "name"));
	pod_write_text(item, "namespace", pod_read_text(metadata, "namespace"));
	pod_write_text(item, "phase", phase[0] == '\0' ? "Unknown" : phase);
	pod_write_in(item, "cpu_request", json_object_new_double((double)requests.cpu_milli / 1000));
	pod_write_int(item, "memory_request_bytes", requests.memory_bytes);
	if (strcmp(phase, "Failed") != 0 && strcmp(phase, "Succeeded") != 0)
		amount_add(&sum->requested, requests);
}

static int64_t
left(int64_t all, int64_t used)
{
	return used < all ? all - used : 0;
}

struct json_object *
node_sum_json(const struct node_sum *sum)
{
	struct json_object *made = pod_write_object();
	struct amount available = { .cpu_milli = left(sum->allocatable.cpu_milli, sum->requested.cpu_milli),
		.memory_bytes = left(sum->allocatable.memory_bytes, sum->requested.memory_bytes) };

	pod_write_text(made, "status", "ok");
	pod_write_in(made, "nodes", json_object_get(sum->nodes));
	pod_write_in(made, "total_capacity", amount_json(sum->capacity));
	pod_write_in(made, "total_allocatable", amount_json(sum->allocatable));
	pod_write_in(made, "total_requested", amount_json(sum->requested));
	pod_write_in(made, "available", amount_json(available));
	pod_write_in(made, "sandbox_pods", json_object_get(sum->pods));
	return made;
}
