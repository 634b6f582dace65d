/* test_claim_rule.c - whose a Lease is, and what is written into it. */
/* SPDX-License-Identifier: MIT */
#include "controller/claim_rule.h"

#include "pods.h"

static void
see(struct claim_sight *sight, const char *text, int64_t now_ms)
{
	AUTO_JSON struct json_object *lease = text != NULL ? pods_json(text) : NULL;

	claim_rule_see(sight, lease, now_ms);
}

static void
test_what_is_free(void **state)
{
	static const char *const texts[] = { NULL, "{}", "{'spec':{}}", "{'spec':[]}",
		"{'spec':{'holderIdentity':''}}", "{'spec':{'holderIdentity':7,'leaseDurationSeconds':'x'}}" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct claim_sight sight = { 0 };

		see(&sight, texts[i], 1000);
		assert_int_equal(claim_rule_owner(&sight, "a", 1000), CLAIM_FREE);
	}
}

/* By our clock from when it was first seen so: what the record says of time is compared and not read. */
static void
test_a_holder_is_gone_when_nothing_changed_for_its_duration(void **state)
{
	static const char first[] = "{'spec':{'holderIdentity':'b','leaseDurationSeconds':20,'renewTime':'2001-01-"
				    "01T00:00:00.000000Z'}}";
	static const char later[] = "{'spec':{'holderIdentity':'b','leaseDurationSeconds':20,'renewTime':'2000-01-"
				    "01T00:00:00.000000Z'}}";
	struct claim_sight sight = { 0 };

	(void)state;
	see(&sight, first, 5000);
	assert_int_equal(claim_rule_owner(&sight, "b", 900000), CLAIM_OURS); /* however old */
	assert_int_equal(claim_rule_owner(&sight, "a", 24999), CLAIM_THEIRS);
	for (int64_t now = 10000; now <= 25000; now += CLAIM_BLIND_MS) /* the same says nothing new */
		see(&sight, first, now);
	assert_int_equal(claim_rule_owner(&sight, "a", 25000), CLAIM_FREE);
	see(&sight, later, 25000);
	assert_int_equal(claim_rule_owner(&sight, "a", 44999), CLAIM_THEIRS);
	assert_int_equal(claim_rule_owner(&sight, "a", 45000), CLAIM_FREE);
	see(&sight, later, 45000); /* after a time in which nobody looked it has another chance */
	assert_int_equal(claim_rule_owner(&sight, "a", 64999), CLAIM_THEIRS);
	see(&sight, NULL, 65000);
	assert_int_equal(claim_rule_owner(&sight, "a", 65000), CLAIM_FREE);
}

static void
test_durations_that_make_no_sense(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "{'spec':{'holderIdentity':'b'}}", CLAIM_DURATION_MS },
		{ "{'spec':{'holderIdentity':'b','leaseDurationSeconds':0}}", CLAIM_DURATION_MS },
		{ "{'spec':{'holderIdentity':'b','leaseDurationSeconds':-5}}", CLAIM_DURATION_MS },
		{ "{'spec':{'holderIdentity':'b','leaseDurationSeconds':9223372036854775807}}", 3600000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct claim_sight sight = { 0 };

		see(&sight, cases[i].text, 0);
		assert_int_equal(sight.duration_ms, cases[i].ms);
	}
	assert_true(CLAIM_TRUST_MS < CLAIM_DURATION_MS);
}

static void
test_a_new_record(void **state)
{
	AUTO_JSON struct json_object *lease = claim_rule_make(NULL, "boxes", "host_a", 1764540000000042);

	(void)state;
	assert_string_equal(pods_text(lease, "kind"), "Lease");
	assert_string_equal(pods_text(lease, "metadata"), "{\"name\":\"orchard\",\"namespace\":\"boxes\"}");
	assert_string_equal(pods_text(lease, "spec"),
		"{\"holderIdentity\":\"host_a\",\"leaseDurationSeconds\":15,\"renewTime\":\"2025-11-30T22:00:00."
		"000042Z\","
		"\"acquireTime\":\"2025-11-30T22:00:00.000042Z\",\"leaseTransitions\":0}");
}

/* The version that is replaced and what others have put there stay. */
static void
test_a_record_that_stands(void **state)
{
	AUTO_JSON struct json_object *standing = pods_json(
		"{'metadata':{'name':'orchard','resourceVersion':'7','labels':{'a':'b'}},'spec':{'holderIdentity':'"
		"b',"
		"'leaseDurationSeconds':60,'acquireTime':'then','leaseTransitions':4}}");
	AUTO_JSON struct json_object *taken = claim_rule_make(standing, "boxes", "a", 0);
	AUTO_JSON struct json_object *renewed = claim_rule_make(taken, "boxes", "a", 5000000);
	AUTO_JSON struct json_object *left = claim_rule_make(renewed, "boxes", "", 6000000);

	(void)state;
	assert_string_equal(pods_text(taken, "metadata/resourceVersion"), "7");
	assert_string_equal(pods_text(taken, "metadata/labels"), "{\"a\":\"b\"}");
	assert_string_equal(pods_text(taken, "spec/holderIdentity"), "a");
	assert_string_equal(pods_text(taken, "spec/leaseTransitions"), "5");
	assert_string_equal(pods_text(taken, "spec/acquireTime"), "1970-01-01T00:00:00.000000Z");
	assert_string_equal(pods_text(renewed, "spec/leaseTransitions"), "5");
	assert_string_equal(pods_text(renewed, "spec/acquireTime"), "1970-01-01T00:00:00.000000Z");
	assert_string_equal(pods_text(renewed, "spec/renewTime"), "1970-01-01T00:00:05.000000Z");
	assert_string_equal(pods_text(left, "spec/holderIdentity"), "");
	assert_string_equal(pods_text(left, "spec/leaseDurationSeconds"), "1");
	assert_string_equal(pods_text(left, "spec/leaseTransitions"), "5");
	assert_string_equal(pods_text(standing, "spec/holderIdentity"), "b");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_free),
		cmocka_unit_test(test_a_holder_is_gone_when_nothing_changed_for_its_duration),
		cmocka_unit_test(test_durations_that_make_no_sense),
		cmocka_unit_test(test_a_new_record),
		cmocka_unit_test(test_a_record_that_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
