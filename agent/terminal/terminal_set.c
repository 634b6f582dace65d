/* terminal_set.c - a list; there are hundreds at most. */
/* SPDX-License-Identifier: MIT */
#include "agent/terminal/terminal_set.h"

#include "agent/config.h"
#include "agent/terminal/terminal.h"
#include "base/alloc.h"
#include "base/err.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct terminal_item {
	struct terminal *terminal;
	TAILQ_ENTRY(terminal_item) link;
};

struct terminal_set {
	struct terminal_shared shared;
	size_t count;
	TAILQ_HEAD(, terminal_item) items; /* the oldest first */
};

static void
set_remove(struct terminal_set *set, struct terminal_item *item)
{
	TAILQ_REMOVE(&set->items, item, link);
	set->count--;
	terminal_free(item->terminal);
	free(item);
}

static void
set_on_over(struct terminal *terminal, void *arg)
{
	struct terminal_set *set = arg;
	struct terminal_item *item;

	TAILQ_FOREACH(item, &set->items, link)
	if (item->terminal == terminal)
		break;
	if (item != NULL)
		set_remove(set, item);
}

struct terminal_set *
terminal_set_create(const struct terminal_set_options *options)
{
	struct terminal_set *set = alloc_zero(1, sizeof *set);

	set->shared = (struct terminal_shared){
		.base = options->base,
		.config = options->config,
		.ground = options->ground,
		.keeper = options->keeper,
		.replay_left = options->config->terminal_replay_bytes,
		.input_left = options->config->terminal_input_bytes,
		.on_over = set_on_over,
		.arg = set,
	};
	TAILQ_INIT(&set->items);
	return set;
}

void
terminal_set_free(struct terminal_set *set)
{
	struct terminal_item *item;

	while ((item = TAILQ_FIRST(&set->items)) != NULL)
		set_remove(set, item);
	free(set);
}

int
terminal_set_start(struct terminal_set *set, const struct terminal_request *request, struct terminal **ret_terminal,
	int *ret_exit_code, struct err *err)
{
	struct terminal_item *item;

	if (set->count >= (size_t)set->shared.config->terminal_max)
		return err_set(err, ERR_BUSY, "the sandbox has %zu terminals: close some", set->count);
	item = alloc_zero(1, sizeof *item);
	if (terminal_start(&set->shared, request, &item->terminal, ret_exit_code, err) < 0) {
		free(item);
		return -1;
	}
	TAILQ_INSERT_TAIL(&set->items, item, link);
	set->count++;
	*ret_terminal = item->terminal;
	return 0;
}

struct terminal *
terminal_set_find(struct terminal_set *set, const char *id)
{
	struct terminal_item *item;

	TAILQ_FOREACH(item, &set->items, link)
	if (strcmp(terminal_id(item->terminal), id) == 0)
		return item->terminal;
	return NULL;
}

size_t
terminal_set_count(const struct terminal_set *set)
{
	return set->count;
}

struct json_object *
terminal_set_describe(const struct terminal_set *set)
{
	struct json_object *list = json_object_new_array();
	struct terminal_item *item;

	TAILQ_FOREACH(item, &set->items, link)
	json_object_array_add(list, terminal_describe(item->terminal));
	return list;
}

void
terminal_set_kill(struct terminal_set *set)
{
	struct terminal_item *item;

	TAILQ_FOREACH(item, &set->items, link)
	terminal_kill(item->terminal);
}

bool
terminal_set_on_exit(struct terminal_set *set, pid_t pid, int status, const struct rusage *usage)
{
	struct terminal_item *item;

	TAILQ_FOREACH(item, &set->items, link)
	if (terminal_on_exit(item->terminal, pid, status, usage))
		return true;
	return false;
}
