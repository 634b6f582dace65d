/*
 * pod_policy_equal.c - policies compared by what they mean.
 *
 * Both are brought into one form: what defaults to something is filled in or left out, lists without an order are
 * sorted. A member that is not known here stays, and so makes a difference: what is not understood is not ours.
 */
/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "controller/pod_policy.h"
#include "controller/pod_read.h"
#include "controller/pod_write.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static int
compare_text(const void *a, const void *b)
{
	return strcmp(json_object_to_json_string_ext(*(struct json_object *const *)a, JSON_C_TO_STRING_PLAIN),
		json_object_to_json_string_ext(*(struct json_object *const *)b, JSON_C_TO_STRING_PLAIN));
}

static struct json_object *canonical(struct json_object *value);

static struct json_object *
canonical_array(struct json_object *array)
{
	struct json_object *made = pod_write_array();

	for (size_t i = 0; i < json_object_array_length(array); i++)
		pod_write_item(made, canonical(json_object_array_get_idx(array, i)));
	json_object_array_sort(made, compare_text);
	return made;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* An empty selector means everything and an absent one something else, so only lists count as absent when empty. */
static bool
is_absent(const char *name, struct json_object *value)
{
	if (json_object_is_type(value, json_type_array))
		return json_object_array_length(value) == 0;
	return value == NULL || (strcmp(name, "matchLabels") == 0 && json_object_object_length(value) == 0);
}

static struct json_object *
canonical_object(struct json_object *object)
{
	struct json_object *made = pod_write_object();
	AUTO_FREE const char **names = calloc((size_t)json_object_object_length(object) + 1, sizeof *names);
	size_t count = 0;

	if (names == NULL)
		abort();
	json_object_object_foreach(object, name, value)
	{
		if (!is_absent(name, value))
			names[count++] = name;
	}
	qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count; i++)
		pod_write_in(made, names[i], canonical(json_object_object_get(object, names[i])));
	return made;
}

static struct json_object *
canonical(struct json_object *value)
{
	if (json_object_is_type(value, json_type_array))
		return canonical_array(value);
	if (json_object_is_type(value, json_type_object))
		return canonical_object(value);
	return json_object_get(value);
}

static void
fill_ports(struct json_object *rules)
{
	for (size_t i = 0; rules != NULL && i < json_object_array_length(rules); i++) {
		struct json_object *ports = pod_read_array(json_object_array_get_idx(rules, i), "ports");

		for (size_t j = 0; ports != NULL && j < json_object_array_length(ports); j++) {
			struct json_object *port = json_object_array_get_idx(ports, j);

			if (json_object_is_type(port, json_type_object) &&
				pod_read_text(port, "protocol")[0] == '\0')
				pod_write_text(port, "protocol", "TCP");
		}
	}
}

/* NULL: it has no spec. */
static struct json_object *
canonical_spec(struct json_object *policy)
{
	AUTO_JSON struct json_object *spec = pod_write_copy(pod_read_object(policy, "spec"));

	if (spec == NULL)
		return NULL;
	fill_ports(pod_read_array(spec, "ingress"));
	fill_ports(pod_read_array(spec, "egress"));
	if (pod_read_array(spec, "policyTypes") == NULL) {
		struct json_object *types = pod_write_in(spec, "policyTypes", pod_write_array());

		pod_write_item_text(types, "Ingress");
		if (pod_read_array(spec, "egress") != NULL &&
			json_object_array_length(pod_read_array(spec, "egress")) > 0)
			pod_write_item_text(types, "Egress");
	}
	return canonical(spec);
}

/* Whom a policy goes with: the uid of its first owner; "" for none. */
static const char *
owner_of(struct json_object *policy)
{
	struct json_object *owners = pod_read_array(pod_read_object(policy, "metadata"), "ownerReferences");

	return owners == NULL ? "" : pod_read_text(json_object_array_get_idx(owners, 0), "uid");
}

bool
pod_policy_equal(struct json_object *standing, struct json_object *wanted)
{
	AUTO_JSON struct json_object *a = canonical_spec(standing);
	AUTO_JSON struct json_object *b = canonical_spec(wanted);

	if (a == NULL || b == NULL || strcmp(owner_of(standing), owner_of(wanted)) != 0)
		return false;
	return compare_text(&a, &b) == 0;
}
