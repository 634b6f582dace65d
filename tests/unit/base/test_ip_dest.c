/* SPDX-License-Identifier: MIT */
#include "base/err.h"
#include "base/ip_dest.h"
#include "base/ip_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct ip_dest
dest_of(const char *text)
{
	struct ip_dest dest = { 0 };
	struct err err;

	if (ip_dest_parse(text, &dest, &err) != 0)
		fail_msg("%s: %s", text, err.msg);
	return dest;
}

static void
test_one_way_to_write_it(void **state)
{
	static const struct {
		const char *text, *shortest, *cidr;
	} cases[] = {
		{ "1.2.3.4", "1.2.3.4", "1.2.3.4/32" },
		{ "10.0.0.0/8:443", "10.0.0.0/8:443", "10.0.0.0/8" },
		{ "0.0.0.0/0", "0.0.0.0/0", "0.0.0.0/0" },
		{ "::/0", "::/0", "::/0" },
		{ "2001:DB8:0:0::/32", "2001:db8::/32", "2001:db8::/32" },
		{ "2001:db8::1/128", "2001:db8::1", "2001:db8::1/128" },
		{ "[2001:db8::1]:1", "[2001:db8::1]:1", "2001:db8::1/128" },
		{ "[2001:db8::/32]:65535", "[2001:db8::/32]:65535", "2001:db8::/32" },
		{ "64:ff9b::8.8.8.8", "64:ff9b::808:808", "64:ff9b::808:808/128" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.254/127",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127" },
	};
	char text[IP_DEST_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ip_dest dest = dest_of(cases[i].text);

		ip_dest_text(&dest, text);
		assert_string_equal(text, cases[i].shortest);
		ip_dest_cidr(&dest, text);
		assert_string_equal(text, cases[i].cidr);
		assert_true(ip_dest_is_formed(&dest));
		assert_int_equal(ip_dest_is_v4(&dest), strchr(cases[i].shortest, ':') == NULL || i == 1);
	}
}

static void
test_refused_with_words(void **state)
{
	static const struct {
		const char *text, *words;
	} wrong[] = {
		{ "", "no IPv4" },
		{ "example.org:80", "no IPv4" },
		{ "1.2.3.4:80:80", "1 to 65535" },
		{ "2001:db8", "no IPv4" },
		{ "2001:db8:", "no IPv6" },
		{ ":::", "no IPv6" },
		{ "1:2:3:4:5:6:7:8:9", "no IPv6" },
		{ "2001:db8::g", "no IPv6" },
		{ "fe80::1%eth0", "no IPv6" },
		{ "2001:db8::1 ", "no IPv6" },
		{ " 2001:db8::1", "no IPv6" },
		{ "2001:db8::/129", "0 to 128" },
		{ "2001:db8::/-1", "0 to 128" },
		{ "2001:db8::/", "0 to 128" },
		{ "2001:db8::/32/32", "0 to 128" },
		{ "2001:db8::/4294967328", "0 to 128" },
		{ "2001:db8::/32:443", "0 to 128" },
		{ "2001:db8::1/32", "write 2001:db8::/32" },
		{ "[2001:db8::1/32]:443", "write [2001:db8::/32]:443" },
		{ "1::/0", "write ::/0" },
		{ "[2001:db8::1]", "where a port follows" },
		{ "[2001:db8::1", "where a port follows" },
		{ "[2001:db8::1]/64:443", "where a port follows" },
		{ "[2001:db8::1]:0", "1 to 65535" },
		{ "[2001:db8::1]:", "1 to 65535" },
		{ "[2001:db8::1]:65536", "1 to 65535" },
		{ "[[2001:db8::1]:80]:80", "1 to 65535" },
		{ "[]:80", "no IPv6" },
		{ "[1.2.3.4]:80", "no IPv6" },
		{ "::ffff:10.0.0.1", "IPv4 written as IPv6; write 10.0.0.1" },
		{ "[::ffff:a00:0/104]:80", "IPv4 written as IPv6; write 10.0.0.0/8:80" },
		{ "::ffff:0:0/96", "IPv4 written as IPv6; write 0.0.0.0/0" },
		{ "1111111111111111111111111111111111111111111111111111111111::1", "no IPv6" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct ip_dest dest = { .prefix = 7 };
		struct err err;

		if (ip_dest_parse(wrong[i].text, &dest, &err) == 0)
			fail_msg("%s is taken", wrong[i].text);
		assert_int_equal(err.code, ERR_INVALID);
		if (strstr(err.msg, wrong[i].words) == NULL)
			fail_msg("%s: %s", wrong[i].text, err.msg);
		assert_int_equal(dest.prefix, 7);
	}
}

static void
test_one_in_another_of_its_family(void **state)
{
	struct ip_dest v6 = dest_of("::/0"), low = dest_of("::/64"), net = dest_of("2001:db8::/32"),
		       host = dest_of("[2001:db8::1]:443");
	struct ip_dest v4 = dest_of("0.0.0.0/0"), ten = dest_of("10.0.0.0/8"), behind = ip_dest_nat64(&ten);
	struct ip_dest nat64 = dest_of("64:ff9b::/96");

	(void)state;
	assert_true(ip_dest_contains(&v6, &net) && ip_dest_contains(&net, &host) && ip_dest_contains(&net, &net));
	assert_false(ip_dest_contains(&net, &v6) || ip_dest_contains(&host, &net));
	assert_true(ip_dest_contains(&v4, &ten));
	assert_false(ip_dest_contains(&v6, &ten) || ip_dest_contains(&low, &ten) || ip_dest_contains(&v4, &net));
	assert_true(ip_dest_contains(&nat64, &behind) && !ip_dest_is_v4(&behind));
	assert_int_equal(ip_dest_v4(&ten).address, 0x0a000000);
	assert_int_equal(ip_dest_v4(&ten).prefix, 8);
}

static void
test_what_a_message_must_not_have(void **state)
{
	struct ip_dest dest = dest_of("2001:db8::1");

	(void)state;
	dest.prefix = 64;
	assert_false(ip_dest_is_formed(&dest));
	dest.prefix = 129;
	assert_false(ip_dest_is_formed(&dest));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_way_to_write_it),
		cmocka_unit_test(test_refused_with_words),
		cmocka_unit_test(test_one_in_another_of_its_family),
		cmocka_unit_test(test_what_a_message_must_not_have),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
