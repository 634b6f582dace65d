/* usage.c - many small requests, a few at a time; differences, percents, order. */
/* SPDX-License-Identifier: MIT */
#include "orchardctl/top/usage.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/quantity.h"
#include "orchardctl/client/client.h"
#include "orchardctl/client/path.h"
#include "orchardctl/client/signals.h"
#include "orchardctl/command.h"
#include "orchardctl/output/print.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOGETHER = 16, STEP_MS = 60000 };

struct ask {
	struct transfer *transfer; /* NULL: free */
	struct request request;
	struct answer answer;
	char *path;
};

struct look {
	const struct ctl *ctl;
	struct json_object *list; /* of sandboxes, as GET /sandboxes has them */
	size_t next;
	struct json_object *seen;
	struct ask asks[TOGETHER];
};

static bool
ask_next(struct look *look, struct ask *ask)
{
	struct json_object *item;

	if (look->next >= json_object_array_length(look->list))
		return false;
	item = json_object_array_get_idx(look->list, look->next++);
	ask->path = path_format("/sandboxes/%s", print_string(item, "sandbox_id"));
	ask->request = (struct request){ .path = ask->path };
	ask->transfer = client_start(look->ctl->client, &ask->request, NULL, &ask->answer);
	return true;
}

static void
take_answer(struct look *look, struct ask *ask)
{
	struct json_object *item = ask->answer.json;

	if (item == NULL || print_string(item, "sandbox_id")[0] == '\0')
		return;
	json_object_object_add(item, "seen_at", json_object_new_double((double)clock_boot_us() / 1e6));
	json_object_object_add(look->seen, print_string(item, "sandbox_id"), json_object_get(item));
}

/* False after what ends the whole look; a sandbox that is gone does not. */
static bool
end_ask(struct look *look, struct ask *ask, struct err *err)
{
	struct err why;
	int rc = client_end(ask->transfer, NULL, &why);

	if (rc == 0)
		take_answer(look, ask);
	else if (why.code != ERR_NOT_FOUND)
		*err = why;
	ask->transfer = NULL;
	answer_fini(&ask->answer);
	free(ask->path);
	return rc == 0 || why.code == ERR_NOT_FOUND;
}

static int
ask_all(struct look *look, struct err *err)
{
	struct signals *signals = look->ctl->signals;
	bool right = true;
	unsigned running;

	do {
		running = 0;
		for (size_t i = 0; i < TOGETHER; i++) {
			struct ask *ask = &look->asks[i];
			bool stop = !right || signals->first != 0;

			if (ask->transfer != NULL && (stop || transfer_is_done(ask->transfer)))
				right = end_ask(look, ask, err) && right;
			if (ask->transfer == NULL && right && signals->first == 0)
				ask_next(look, ask);
			running += ask->transfer != NULL;
		}
		if (running > 0)
			client_step(look->ctl->client, NULL, 0, STEP_MS);
	} while (running > 0);
	if (signals->first != 0)
		return err_set(err, ERR_STALE, "interrupted");
	return right ? 0 : -1;
}

struct json_object *
usage_look(const struct ctl *ctl, const struct sandbox_filter *filter, struct err *err)
{
	AUTO_JSON struct json_object *list = sandbox_list(ctl->client, filter, err);
	struct look look = { .ctl = ctl, .list = list };

	if (list == NULL)
		return NULL;
	look.seen = must_alloc(json_object_new_object());
	if (ask_all(&look, err) == 0)
		return look.seen;
	json_object_put(look.seen);
	return NULL;
}

static void
add_number(struct json_object *row, const char *name, struct json_object *item, const char *key)
{
	json_object_object_add(row, name, json_object_get(print_member(item, key)));
}

/* In tenths; json-c alone would write 17 digits. */
static struct json_object *
percent(double share)
{
	char text[32];

	snprintf(text, sizeof text, "%.1f", 100 * share);
	return must_alloc(json_object_new_double_s(strtod(text, NULL), text));
}

static struct json_object *
cpu_percent(struct json_object *before, struct json_object *now)
{
	struct json_object *old = before != NULL ? print_member(before, "usage.cpu_s") : NULL;
	struct json_object *new = print_member(now, "usage.cpu_s");
	double seconds, used;

	/* Another life of the same name begins at 0. */
	if (old == NULL || new == NULL ||
		!json_object_equal(print_member(before, "created_at"), print_member(now, "created_at")))
		return NULL;
	seconds = json_object_get_double(print_member(now, "seen_at")) -
		json_object_get_double(print_member(before, "seen_at"));
	used = json_object_get_double(new) - json_object_get_double(old);
	if (seconds <= 0 || used < 0)
		return NULL;
	return percent(used / seconds);
}

static struct json_object *
memory_percent(struct json_object *item)
{
	struct json_object *used = print_member(item, "usage.memory_bytes");
	int64_t limit;

	if (used == NULL || quantity_parse_memory(print_string(item, "memory"), &limit) != 0)
		return NULL;
	return percent(json_object_get_double(used) / (double)limit);
}

struct json_object *
usage_rows(struct json_object *before, struct json_object *now)
{
	struct json_object *rows = must_alloc(json_object_new_array());

	json_object_object_foreach(now, id, item)
	{
		struct json_object *row = must_alloc(json_object_new_object()), *old = NULL;

		if (before != NULL)
			json_object_object_get_ex(before, id, &old);
		add_number(row, "sandbox_id", item, "sandbox_id");
		add_number(row, "status", item, "status");
		json_object_object_add(row, "cpu_percent", cpu_percent(old, item));
		add_number(row, "cpu_limit", item, "cpu");
		add_number(row, "memory_bytes", item, "usage.memory_bytes");
		json_object_object_add(row, "memory_percent", memory_percent(item));
		add_number(row, "memory_limit", item, "memory");
		add_number(row, "memory_peak_bytes", item, "usage.memory_peak_bytes");
		add_number(row, "pids", item, "usage.pids");
		add_number(row, "disk_bytes", item, "usage.disk_bytes");
		json_object_array_add(rows, row);
	}
	return rows;
}

static const char *const order_keys[] = {
	[USAGE_BY_CPU] = "cpu_percent",
	[USAGE_BY_MEMORY] = "memory_bytes",
	[USAGE_BY_DISK] = "disk_bytes",
	[USAGE_BY_PIDS] = "pids",
	[USAGE_BY_NAME] = "sandbox_id",
};

static int
compare_names(const void *a, const void *b)
{
	return strcmp(print_string(*(struct json_object *const *)a, "sandbox_id"),
		print_string(*(struct json_object *const *)b, "sandbox_id"));
}

/* qsort() and json-c pass no argument along. */
static _Thread_local const char *order_key;

static int
compare_numbers(const void *a, const void *b)
{
	struct json_object *x = print_member(*(struct json_object *const *)a, order_key);
	struct json_object *y = print_member(*(struct json_object *const *)b, order_key);
	double left = x != NULL ? json_object_get_double(x) : -1,
	       right = y != NULL ? json_object_get_double(y) : -1;

	return left != right ? (left < right) - (left > right) : compare_names(a, b);
}

void
usage_sort(struct json_object *rows, enum usage_order order)
{
	order_key = order_keys[order];
	json_object_array_sort(rows, order == USAGE_BY_NAME ? compare_names : compare_numbers);
}
