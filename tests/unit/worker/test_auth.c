/* test_auth.c - which headers open the door. */
/* SPDX-License-Identifier: MIT */
#include "worker/auth.h"

#include "conf/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static char key_one[] = "first-key";
static char key_two[] = "second-key";
static char key_empty[] = "";
static char *items[] = { key_one, key_empty, key_two };
static const struct config_list keys = { 3, items };

static enum auth_result
check(const char *x_api_key, const char *authorization)
{
	const char *tenant = NULL;
	enum auth_result result = auth_check(&keys, x_api_key, authorization, &tenant);

	if (result == AUTH_OK)
		assert_string_equal(tenant, "default");
	else
		assert_null(tenant);
	return result;
}

static void
test_any_configured_key_opens_by_either_header(void **state)
{
	(void)state;
	assert_int_equal(check("first-key", NULL), AUTH_OK);
	assert_int_equal(check("second-key", NULL), AUTH_OK);
	assert_int_equal(check(NULL, "Bearer first-key"), AUTH_OK);
	assert_int_equal(check(NULL, "bearer   second-key"), AUTH_OK);
}

static void
test_no_key_is_missing(void **state)
{
	(void)state;
	assert_int_equal(check(NULL, NULL), AUTH_MISSING);
	assert_int_equal(check("", NULL), AUTH_MISSING);
	assert_int_equal(check(NULL, ""), AUTH_MISSING);
	assert_int_equal(check(NULL, "Bearer "), AUTH_MISSING);
	assert_int_equal(check(NULL, "Bearer"), AUTH_MISSING);
	assert_int_equal(check(NULL, "Basic Zmlyc3Qta2V5"), AUTH_MISSING);
}

static void
test_a_key_that_differs_anywhere_is_wrong(void **state)
{
	(void)state;
	assert_int_equal(check("first-kez", NULL), AUTH_WRONG);
	assert_int_equal(check("First-key", NULL), AUTH_WRONG);
	assert_int_equal(check("first-key2", NULL), AUTH_WRONG);
	assert_int_equal(check("first-ke", NULL), AUTH_WRONG);
	assert_int_equal(check(NULL, "Bearer first-key "), AUTH_WRONG);
	assert_int_equal(check("first-key,second-key", NULL), AUTH_WRONG);
}

static void
test_x_api_key_wins_over_authorization(void **state)
{
	(void)state;
	assert_int_equal(check("wrong", "Bearer first-key"), AUTH_WRONG);
	assert_int_equal(check("first-key", "Bearer wrong"), AUTH_OK);
	assert_int_equal(check("", "Bearer first-key"), AUTH_OK);
}

static void
test_without_keys_nothing_opens(void **state)
{
	static const struct config_list none = { 0, NULL };
	const char *tenant = NULL;

	(void)state;
	assert_int_equal(auth_check(&none, "x", NULL, &tenant), AUTH_WRONG);
	assert_int_equal(auth_check(&none, "", NULL, &tenant), AUTH_MISSING);
	assert_null(tenant);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_configured_key_opens_by_either_header),
		cmocka_unit_test(test_no_key_is_missing),
		cmocka_unit_test(test_a_key_that_differs_anywhere_is_wrong),
		cmocka_unit_test(test_x_api_key_wins_over_authorization),
		cmocka_unit_test(test_without_keys_nothing_opens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
