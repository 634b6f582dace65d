/* lane.c - lanes by name, most recently used first. */
/* SPDX-License-Identifier: MIT */
#include "agent/lane.h"

#include "base/alloc.h"
#include "agent/job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

enum { LANE_BUCKETS = 256 };

struct lane {
	char *name;
	int64_t newest;
	struct job *running;
	TAILQ_ENTRY(lane) by_use;
	LIST_ENTRY(lane) by_name;
};

LIST_HEAD(lane_list, lane);

struct lane_table {
	uint32_t count, running;
	int64_t floor, newest;
	TAILQ_HEAD(lane_queue, lane) by_use;
	struct lane_list by_name[LANE_BUCKETS];
};

struct lane_table *
lane_table_create(void)
{
	struct lane_table *table = alloc_zero(1, sizeof *table);

	TAILQ_INIT(&table->by_use);
	for (size_t i = 0; i < LANE_BUCKETS; i++)
		LIST_INIT(&table->by_name[i]);
	return table;
}

static void
lane_remove(struct lane_table *table, struct lane *lane)
{
	TAILQ_REMOVE(&table->by_use, lane, by_use);
	LIST_REMOVE(lane, by_name);
	table->count--;
	free(lane->name);
	free(lane);
}

void
lane_table_free(struct lane_table *table)
{
	struct lane *lane;

	while ((lane = TAILQ_FIRST(&table->by_use)) != NULL)
		lane_remove(table, lane);
	free(table);
}

static struct lane_list *
lane_bucket(struct lane_table *table, const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name != '\0'; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return &table->by_name[hash % LANE_BUCKETS];
}

static struct lane *
lane_find(struct lane_table *table, const char *name)
{
	struct lane *lane;

	LIST_FOREACH(lane, lane_bucket(table, name), by_name)
	if (strcmp(lane->name, name) == 0)
		return lane;
	return NULL;
}

/* False when every lane is running something. */
static bool
lane_evict(struct lane_table *table)
{
	struct lane *lane;

	TAILQ_FOREACH_REVERSE(lane, &table->by_use, lane_queue, by_use)
	if (lane->running == NULL) {
		if (lane->newest > table->floor)
			table->floor = lane->newest;
		lane_remove(table, lane);
		return true;
	}
	return false;
}

static struct lane *
lane_add(struct lane_table *table, const char *name)
{
	struct lane *lane;

	if (table->count >= LANE_MAX && !lane_evict(table))
		return NULL;
	lane = alloc_zero(1, sizeof *lane);
	lane->name = alloc_string(name);
	lane->newest = table->floor;
	TAILQ_INSERT_HEAD(&table->by_use, lane, by_use);
	LIST_INSERT_HEAD(lane_bucket(table, name), lane, by_name);
	table->count++;
	return lane;
}

enum lane_answer
lane_check(struct lane_table *table, const char *name, int64_t fence, struct job **ret_running, int64_t *ret_newest)
{
	struct lane *lane = lane_find(table, name);

	if (lane == NULL)
		lane = lane_add(table, name);
	if (lane == NULL)
		return LANE_FULL;
	if (lane->running != NULL) {
		*ret_running = lane->running;
		return LANE_BUSY;
	}
	if (fence <= lane->newest) {
		*ret_newest = lane->newest;
		return LANE_STALE;
	}
	return LANE_FREE;
}

void
lane_enter(struct lane_table *table, struct job *job)
{
	struct lane *lane = lane_find(table, job->lane);

	lane->running = job;
	lane->newest = job->fence;
	if (job->fence > table->newest)
		table->newest = job->fence;
	table->running++;
	TAILQ_REMOVE(&table->by_use, lane, by_use);
	TAILQ_INSERT_HEAD(&table->by_use, lane, by_use);
}

void
lane_leave(struct lane_table *table, struct job *job)
{
	struct lane *lane = lane_find(table, job->lane);

	if (lane == NULL || lane->running != job)
		return;
	lane->running = NULL;
	table->running--;
}

int64_t
lane_newest_fence(const struct lane_table *table)
{
	return table->newest;
}

uint32_t
lane_running(const struct lane_table *table)
{
	return table->running;
}
