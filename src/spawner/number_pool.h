/* number_pool.h - numbers that are given out one by one, the one given back last as late as possible. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_SPAWNER_NUMBER_POOL_H
#define ORCHARD_SPAWNER_NUMBER_POOL_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

/* 0 to count - 1. */
struct number_pool {
	uint32_t count, next;
	bool *taken;
};

void number_pool_init(struct number_pool *pool, uint32_t count);
void number_pool_fini(struct number_pool *pool);
/* False when all are taken. */
bool number_pool_take(struct number_pool *pool, uint32_t *ret_number) MUSTCHECK;
/* That very one; false when it is taken or there is no such. */
bool number_pool_claim(struct number_pool *pool, uint32_t number) MUSTCHECK;
void number_pool_give(struct number_pool *pool, uint32_t number);

#endif
