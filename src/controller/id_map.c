/* id_map.c - a hash table with chains; it grows and never shrinks. */
/* SPDX-License-Identifier: MIT */
#include "controller/id_map.h"

#include "base/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_FIRST = 64 };

struct entry {
	struct entry *next;
	const char *key;
	void *value;
};

struct id_map {
	struct entry **buckets;
	size_t size, count; /* size: a power of two */
};

static size_t
hash(const char *key)
{
	uint32_t h = 2166136261U;

	for (; *key != '\0'; key++)
		h = (h ^ (unsigned char)*key) * 16777619U;
	return h;
}

static struct entry **
place_of(const struct id_map *map, const char *key)
{
	struct entry **at = &map->buckets[hash(key) & (map->size - 1)];

	while (*at != NULL && strcmp((*at)->key, key) != 0)
		at = &(*at)->next;
	return at;
}

struct id_map *
id_map_create(void)
{
	struct id_map *map = alloc_zero(1, sizeof *map);

	map->size = BUCKETS_FIRST;
	map->buckets = alloc_zero(map->size, sizeof *map->buckets);
	return map;
}

void
id_map_free(struct id_map *map)
{
	if (map == NULL)
		return;
	for (size_t i = 0; i < map->size; i++) {
		for (struct entry *entry = map->buckets[i], *next; entry != NULL; entry = next) {
			next = entry->next;
			free(entry);
		}
	}
	free(map->buckets);
	free(map);
}

static void
grow(struct id_map *map)
{
	struct id_map bigger = { .size = map->size * 2 };

	bigger.buckets = alloc_zero(bigger.size, sizeof *bigger.buckets);
	for (size_t i = 0; i < map->size; i++) {
		for (struct entry *entry = map->buckets[i], *next; entry != NULL; entry = next) {
			struct entry **at = place_of(&bigger, entry->key);

			next = entry->next;
			entry->next = *at;
			*at = entry;
		}
	}
	free(map->buckets);
	map->buckets = bigger.buckets;
	map->size = bigger.size;
}

void
id_map_add(struct id_map *map, const char *key, void *value)
{
	struct entry *entry = alloc_zero(1, sizeof *entry), **at;

	if (map->count == map->size)
		grow(map);
	at = place_of(map, key);
	*entry = (struct entry){ .next = *at, .key = key, .value = value };
	*at = entry;
	map->count++;
}

void *
id_map_find(const struct id_map *map, const char *key)
{
	const struct entry *entry = *place_of(map, key);

	return entry != NULL ? entry->value : NULL;
}

void
id_map_remove(struct id_map *map, const char *key)
{
	struct entry **at = place_of(map, key), *entry = *at;

	if (entry == NULL)
		return;
	*at = entry->next;
	free(entry);
	map->count--;
}

size_t
id_map_count(const struct id_map *map)
{
	return map->count;
}

void **
id_map_all(const struct id_map *map)
{
	void **all = alloc_zero(map->count + 1, sizeof *all);
	size_t n = 0;

	for (size_t i = 0; i < map->size; i++)
		for (const struct entry *entry = map->buckets[i]; entry != NULL; entry = entry->next)
			all[n++] = entry->value;
	return all;
}
