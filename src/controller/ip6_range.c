/* ip6_range.c - an address and how many of its bits count. */
/* SPDX-License-Identifier: MIT */
#include "controller/ip6_range.h"

#include "base/err.h"
#include "base/ip_range.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 128, NAT64_BITS = 96 };

/* RFC 6052. */
static const struct in6_addr nat64 = { .s6_addr = { 0x00, 0x64, 0xff, 0x9b } };

bool
ip6_range_is_meant(const char *text)
{
	const char *colon = strchr(text, ':');

	return colon != NULL && strchr(colon + 1, ':') != NULL;
}

static void
clear_right_of(struct in6_addr *address, uint8_t prefix)
{
	for (unsigned bit = prefix; bit < BITS; bit++)
		address->s6_addr[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

static int
read_prefix(const char *digits, uint8_t *ret_prefix)
{
	char *end;
	unsigned long prefix = strtoul(digits, &end, 10);

	if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || prefix > BITS)
		return -1;
	*ret_prefix = (uint8_t)prefix;
	return 0;
}

int
ip6_range_parse(const char *text, struct ip6_range *ret_range, struct err *err)
{
	struct ip6_range range = { .prefix = BITS }, begins;
	char address[INET6_ADDRSTRLEN], right[IP6_RANGE_TEXT_SIZE];
	size_t len = strcspn(text, "/");

	if (len < sizeof address) {
		memcpy(address, text, len);
		address[len] = '\0';
	}
	if (len >= sizeof address || inet_pton(AF_INET6, address, &range.address) != 1)
		return err_set(err, ERR_INVALID, "\"%.60s\" is no IPv6 address or range of such", text);
	if (text[len] == '/' && read_prefix(text + len + 1, &range.prefix) != 0)
		return err_set(err, ERR_INVALID, "\"%.60s\": behind the / comes a number from 0 to %d", text, BITS);
	begins = range;
	clear_right_of(&begins.address, begins.prefix);
	if (memcmp(&begins.address, &range.address, sizeof range.address) != 0) {
		ip6_range_text(&begins, right);
		return err_set(err, ERR_INVALID, "\"%.60s\" is not where a range of that size begins; write %s",
			text, right);
	}
	*ret_range = range;
	return 0;
}

void
ip6_range_text(const struct ip6_range *range, char ret_text[IP6_RANGE_TEXT_SIZE])
{
	size_t len;

	(void)inet_ntop(AF_INET6, &range->address, ret_text, INET6_ADDRSTRLEN);
	len = strlen(ret_text);
	snprintf(ret_text + len, IP6_RANGE_TEXT_SIZE - len, "/%u", range->prefix);
}

bool
ip6_range_contains(const struct ip6_range *outer, const struct ip6_range *inner)
{
	struct in6_addr address = inner->address;

	clear_right_of(&address, outer->prefix);
	return outer->prefix <= inner->prefix && memcmp(&address, &outer->address, sizeof address) == 0;
}

struct ip6_range
ip6_range_of_v4(const struct ip_range *range)
{
	struct ip6_range made = { .address = nat64, .prefix = (uint8_t)(NAT64_BITS + range->prefix) };
	uint32_t address = htonl(range->address);

	memcpy(made.address.s6_addr + NAT64_BITS / 8, &address, sizeof address);
	return made;
}
