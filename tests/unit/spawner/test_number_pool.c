/* number_pool: a number rests after its use. */
/* SPDX-License-Identifier: MIT */
#include "spawner/number_pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
test_numbers_rest_before_they_come_back(void **state)
{
	struct number_pool pool;
	uint32_t number;

	(void)state;
	number_pool_init(&pool, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(number_pool_take(&pool, &number));
		assert_int_equal(number, i);
	}
	assert_false(number_pool_take(&pool, &number));
	number_pool_give(&pool, 1);
	assert_false(number_pool_claim(&pool, 0) || number_pool_claim(&pool, 3));
	assert_true(number_pool_claim(&pool, 1));
	number_pool_give(&pool, 0);
	number_pool_give(&pool, 2);
	assert_true(number_pool_take(&pool, &number) && number == 0); /* behind the last one taken */
	number_pool_give(&pool, 0);
	assert_true(number_pool_take(&pool, &number) && number == 2); /* not the one just left */
	number_pool_fini(&pool);
}

static void
test_no_number_at_all(void **state)
{
	struct number_pool pool;
	uint32_t number;

	(void)state;
	number_pool_init(&pool, 0);
	assert_false(number_pool_take(&pool, &number) || number_pool_claim(&pool, 0));
	number_pool_fini(&pool);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_rest_before_they_come_back),
		cmocka_unit_test(test_no_number_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
