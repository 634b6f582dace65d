/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/ip_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static struct ip_range
range_of(const char *text)
{
	struct ip_range range = { 0 };
	struct err err;

	if (ip_range_parse(text, &range, &err) != 0)
		fail_msg("%s: %s", text, err.msg);
	return range;
}

static void
test_there_and_back(void **state)
{
	static const char *const texts[] = { "0.0.0.0/0", "1.2.3.4", "10.0.0.0/8", "10.1.2.0/24:443", "1.2.3.4:1",
		"255.255.255.255:65535", "128.0.0.0/1", "255.255.255.254/31:65535" };
	char text[IP_RANGE_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct ip_range range = range_of(texts[i]);

		ip_range_text(&range, text);
		assert_string_equal(text, texts[i]);
		assert_true(ip_range_is_formed(&range));
	}
	assert_int_equal(range_of("10.1.2.3/32").prefix, 32);
	assert_int_equal(range_of("10.1.2.0/24:443").address, 0x0a010200);
	assert_int_equal(range_of("10.1.2.0/24:443").port, 443);
}

static void
test_refused_with_words(void **state)
{
	static const struct {
		const char *text, *words;
	} wrong[] = { { "", "no IPv4" }, { "example.org", "no IPv4" }, { "1.2.3", "no IPv4" },
		{ "1.2.3.4.5", "no IPv4" }, { "1.2.3.256", "no IPv4" }, { "01.2.3.4", "no IPv4" },
		{ "::1", "no IPv4" }, { " 1.2.3.4", "no IPv4" }, { "1.2.3.4 ", "no IPv4" },
		{ "1.2.3.4/", "0 to 32" }, { "1.2.3.4/33", "0 to 32" }, { "1.2.3.4/-1", "0 to 32" },
		{ "1.2.3.4/8/8", "0 to 32" }, { "1.2.3.4:", "1 to 65535" }, { "1.2.3.4:0", "1 to 65535" },
		{ "1.2.3.4:65536", "1 to 65535" }, { "1.2.3.4:80:80", "1 to 65535" },
		{ "1.2.3.4:http", "1 to 65535" }, { "1.2.3.4/24:443", "write 1.2.3.0/24:443" },
		{ "1.0.0.0/0", "write 0.0.0.0/0" },
		{ "1111111111111111111111111111111111111111111111111111111111.2.3.4", "no IPv4" } };

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		struct ip_range range = { 7, 7, 7 };
		struct err err;

		assert_int_equal(ip_range_parse(wrong[i].text, &range, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (strstr(err.msg, wrong[i].words) == NULL)
			fail_msg("%s: %s", wrong[i].text, err.msg);
		assert_int_equal(range.address, 7);
	}
}

static void
test_one_in_another(void **state)
{
	struct ip_range all = range_of("0.0.0.0/0"), ten = range_of("10.0.0.0/8"), net = range_of("10.1.2.0/24");
	struct ip_range host = range_of("10.1.2.255"), other = range_of("10.1.3.0/24");
	struct ip_range unformed = { 0x0a010203, 24, 0 };

	(void)state;
	assert_true(
		ip_range_contains(&all, &ten) && ip_range_contains(&ten, &net) && ip_range_contains(&net, &host));
	assert_true(ip_range_contains(&net, &net));
	assert_false(ip_range_contains(&net, &ten) || ip_range_contains(&other, &host));
	assert_true(ip_range_overlaps(&net, &ten) && ip_range_overlaps(&ten, &net));
	assert_false(ip_range_overlaps(&net, &other));
	assert_int_equal(ip_range_last(&net), host.address);
	assert_int_equal(ip_range_last(&all), UINT32_MAX);
	assert_false(ip_range_is_formed(&unformed));
	unformed.prefix = 33;
	assert_false(ip_range_is_formed(&unformed));
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_there_and_back),
		cmocka_unit_test(test_refused_with_words), cmocka_unit_test(test_one_in_another) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
