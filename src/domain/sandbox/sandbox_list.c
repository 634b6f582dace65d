/*
 * sandbox_list.c - a tenant's sandboxes in pages, newest first.
 *
 * The order is by creation and then id, and a cursor names the last one shown,
 * so a page is right whatever came or went in between.
 */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/sandbox.h"
#include "domain/service_priv.h"
#include "base/alloc.h"
#include "base/err.h"
#include "base/id.h"
#include "base/json.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A place in the order. */
struct list_place {
	uint64_t created_us;
	char id[SANDBOX_ID_SIZE];
	uint32_t slot;
};

static int
place_compare(const void *a, const void *b)
{
	const struct list_place *left = a, *right = b;

	if (left->created_us != right->created_us)
		return left->created_us > right->created_us ? -1 : 1;
	return strcmp(left->id, right->id);
}

static void
place_of(const struct sandbox_record *record, uint32_t slot, struct list_place *ret)
{
	ret->created_us = (uint64_t)(record->created_at * 1e6);
	ret->slot = slot;
	memcpy(ret->id, record->id, sizeof ret->id);
}

static int
cursor_read(const char *cursor, struct list_place *ret, struct err *err)
{
	char *end;

	*ret = (struct list_place){ 0 };
	ret->created_us = strtoull(cursor, &end, 16);
	if (end != cursor + 16 || *end != '.' || !id_is_sandbox_id(end + 1))
		return err_set(err, ERR_INVALID, "the cursor is not one that this server gave out");
	snprintf(ret->id, sizeof ret->id, "%s", end + 1);
	return 0;
}

/* The pair is compared as one text: a name may hold a "=" itself. */
static bool
label_matches(const struct sandbox_record *record, const char *label)
{
	AUTO_JSON struct json_object *labels = NULL;
	struct err err;

	if (label == NULL)
		return true;
	labels = json_parse(record->labels, strlen(record->labels), &err);
	if (labels == NULL)
		return false;
	json_object_object_foreach(labels, name, value)
	{
		size_t len = strlen(name);

		if (strncmp(label, name, len) == 0 && label[len] == '=' &&
			strcmp(label + len + 1, json_object_get_string(value)) == 0)
			return true;
	}
	return false;
}

static bool
list_matches(const struct sandbox_record *record, const char *tenant, const struct sandbox_filter *filter)
{
	if (record->status == SANDBOX_DELETING || record->status == SANDBOX_DOUBTFUL ||
		strcmp(record->tenant, tenant) != 0)
		return false;
	return (filter->status < 0 || record->status == (uint32_t)filter->status) &&
		label_matches(record, filter->label);
}

/* Every place behind `after` that matches, unsorted. */
static size_t
list_collect(struct service *service, const char *tenant, const struct sandbox_filter *filter,
	const struct list_place *after, struct list_place *places, size_t max)
{
	struct sandbox_record record;
	size_t n = 0;

	for (uint32_t slot = 0; slot < max; slot++) {
		if (!sandbox_table_read(service_sandboxes(service), slot, &record) ||
			!list_matches(&record, tenant, filter))
			continue;
		place_of(&record, slot, &places[n]);
		if (after == NULL || place_compare(after, &places[n]) < 0)
			n++;
	}
	return n;
}

static void
list_fill(struct service *service, const struct list_place *places, size_t n, struct json_object *list)
{
	struct sandbox_record record;

	for (size_t i = 0; i < n; i++) {
		if (sandbox_table_read(service_sandboxes(service), places[i].slot, &record) &&
			strcmp(record.id, places[i].id) == 0 && record.status != SANDBOX_DELETING)
			json_object_array_add(list, sandbox_json(service, &record));
	}
}

int
sandbox_list(struct service *service, const char *tenant, const struct sandbox_filter *filter,
	struct json_object **ret_list, char ret_cursor[96], struct err *err)
{
	uint32_t bound = sandbox_table_bound(service_sandboxes(service));
	AUTO_FREE struct list_place *places = alloc_zero(1, (bound + (size_t)1) * sizeof *places);
	struct list_place after;
	struct json_object *list;
	size_t n, shown;

	if (filter->cursor != NULL && cursor_read(filter->cursor, &after, err) != 0)
		return -1;
	n = list_collect(service, tenant, filter, filter->cursor != NULL ? &after : NULL, places, bound);
	qsort(places, n, sizeof *places, place_compare);
	shown = filter->limit > 0 && n > filter->limit ? filter->limit : n;
	list = json_object_new_array();
	list_fill(service, places, shown, list);
	ret_cursor[0] = '\0';
	if (shown < n)
		snprintf(ret_cursor, 96, "%016" PRIx64 ".%s", places[shown - 1].created_us, places[shown - 1].id);
	*ret_list = list;
	return (int)json_object_array_length(list);
}
