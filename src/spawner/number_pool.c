/* number_pool.c - goes round, so that what one has just left rests for a while. */
/* SPDX-License-Identifier: MIT */
#include "spawner/number_pool.h"

void
number_pool_init(struct number_pool *pool, uint32_t count)
{
	pool->count = count;
	pool->next = 0;
	pool->taken = must_alloc(calloc(count + 1, sizeof *pool->taken));
}

void
number_pool_fini(struct number_pool *pool)
{
	free(pool->taken);
	pool->taken = NULL;
}

bool
number_pool_claim(struct number_pool *pool, uint32_t number)
{
	if (number >= pool->count || pool->taken[number])
		return false;
	pool->taken[number] = true;
	return true;
}

bool
number_pool_take(struct number_pool *pool, uint32_t *ret_number)
{
	for (uint32_t i = 0; i < pool->count; i++) {
		uint32_t number = (pool->next + i) % pool->count;

		if (!number_pool_claim(pool, number))
			continue;
		pool->next = (number + 1) % pool->count;
		*ret_number = number;
		return true;
	}
	return false;
}

void
number_pool_give(struct number_pool *pool, uint32_t number)
{
	pool->taken[number] = false;
}
