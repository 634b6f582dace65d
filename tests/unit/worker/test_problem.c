/* test_problem.c - every kind of failure has a status and a word that never change. */
/* SPDX-License-Identifier: MIT */
#include "worker/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
test_every_err_code_is_mapped(void **state)
{
	(void)state;
	for (unsigned int code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++) {
		enum problem problem = problem_of_err((enum err_code)code);

		assert_int_not_equal(problem, PROBLEM_NONE);
		if (code != ERR_INTERNAL && problem == PROBLEM_INTERNAL)
			fail_msg("%s has no line in the table", err_code_name((enum err_code)code));
	}
	assert_int_equal(problem_of_err(ERR_NONE), PROBLEM_INTERNAL);
	assert_int_equal(problem_of_err(ERR_CODE_COUNT), PROBLEM_INTERNAL);
}

static void
test_every_problem_has_a_status_and_a_word_of_its_own(void **state)
{
	(void)state;
	for (unsigned int i = PROBLEM_NONE + 1; i < PROBLEM_COUNT; i++) {
		const struct problem_info *info = problem_info((enum problem)i);

		assert_non_null(info->code);
		assert_in_range(info->status, 400, 599);
		assert_int_equal(info->retry_after_s > 0, info->status == 503 || i == PROBLEM_CONFLICT);
		for (unsigned int j = PROBLEM_NONE + 1; j < i; j++)
			assert_string_not_equal(info->code, problem_info((enum problem)j)->code);
	}
}

static void
test_the_contract_of_the_api_stands(void **state)
{
	static const struct {
		enum err_code err;
		int status;
		const char *code;
	} contract[] = {
		{ ERR_INVALID, 422, "invalid_request" },
		{ ERR_NOT_FOUND, 404, "not_found" },
		{ ERR_DELETED, 404, "not_found" },
		{ ERR_EXISTS, 409, "sandbox_exists" },
		{ ERR_NOT_READY, 409, "sandbox_not_ready" },
		{ ERR_CONFLICT, 409, "conflict" },
		{ ERR_KEY_CONFLICT, 409, "idempotency_conflict" },
		{ ERR_OUTCOME_LOST, 410, "outcome_lost" },
		{ ERR_TOO_LARGE, 413, "payload_too_large" },
		{ ERR_RANGE, 416, "offset_out_of_range" },
		{ ERR_GONE, 410, "output_gone" },
		{ ERR_CLOSED, 409, "stdin_closed" },
		{ ERR_BUSY, 503, "queue_full" },
		{ ERR_NO_CAPACITY, 503, "no_capacity" },
		{ ERR_AGENT_UNREACHABLE, 503, "agent_unreachable" },
		{ ERR_UNAVAILABLE, 503, "unavailable" },
		{ ERR_NO_SPACE, 507, "insufficient_storage" },
		{ ERR_TIMEOUT, 408, "wait_timeout" },
		{ ERR_UNSUPPORTED, 501, "unsupported" },
		{ ERR_INTERNAL, 500, "internal" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof contract / sizeof contract[0]; i++) {
		const struct problem_info *info = problem_info(problem_of_err(contract[i].err));

		assert_int_equal(info->status, contract[i].status);
		assert_string_equal(info->code, contract[i].code);
	}
}

static void
test_a_codec_refusal_has_a_word_whatever_its_status(void **state)
{
	(void)state;
	assert_string_equal(problem_code_of_status(413), "payload_too_large");
	assert_string_equal(problem_code_of_status(431), "headers_too_large");
	assert_string_equal(problem_code_of_status(499), "bad_request");
	assert_string_equal(problem_code_of_status(599), "internal");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_err_code_is_mapped),
		cmocka_unit_test(test_every_problem_has_a_status_and_a_word_of_its_own),
		cmocka_unit_test(test_the_contract_of_the_api_stands),
		cmocka_unit_test(test_a_codec_refusal_has_a_word_whatever_its_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
