/* id_map.h - pointers by the id or uid that their owner holds. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_ID_MAP_H
#define ORCHARD_CONTROLLER_ID_MAP_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stddef.h>

struct id_map;

struct id_map *id_map_create(void);
/* What is in it stays its owners'. NULL is fine. */
void id_map_free(struct id_map *map);

/* key: borrowed until it is removed, and not in there yet. */
void id_map_add(struct id_map *map, const char *key, void *value);
void *id_map_find(const struct id_map *map, const char *key);
void id_map_remove(struct id_map *map, const char *key);
size_t id_map_count(const struct id_map *map);

/*
 * All that are in it when it is called, even if calls of each add and remove some; malloc'ed, NULL-terminated. What was
 * removed meanwhile may be gone: a caller that lets others remove looks each up again, or holds none of them.
 */
void **id_map_all(const struct id_map *map);

#endif
