/* ip_range.c - ranges of IPv4 addresses from text and back. */
/* SPDX-License-Identifier: MIT */
#include "base/ip_range.h"

#include "base/err.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static uint32_t
mask_of(unsigned prefix)
{
	return prefix == 0 ? 0 : UINT32_MAX << (32 - prefix);
}

bool
ip_range_number(const char *text, size_t len, unsigned min, unsigned max, uint16_t *ret)
{
	unsigned value = 0;

	if (len == 0 || len > 5)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	*ret = (uint16_t)value;
	return value >= min && value <= max;
}

int
ip_range_parse(const char *text, struct ip_range *ret_range, struct err *err)
{
	size_t len = strcspn(text, "/:"), bits_len = 0;
	struct ip_range range = { .prefix = 32 };
	const char *rest = text + len;
	char address[INET_ADDRSTRLEN], right[IP_RANGE_TEXT_SIZE];
	struct in_addr in;

	if (len >= sizeof address)
		return err_set(err, ERR_INVALID, "\"%.60s\" is no IPv4 address", text);
	memcpy(address, text, len);
	address[len] = '\0';
	if (inet_pton(AF_INET, address, &in) != 1)
		return err_set(err, ERR_INVALID, "\"%.60s\" is no IPv4 address or range of such", text);
	range.address = ntohl(in.s_addr);
	if (*rest == '/') {
		bits_len = strcspn(rest + 1, ":");
		if (!ip_range_number(rest + 1, bits_len, 0, 32, &range.prefix))
			return err_set(
				err, ERR_INVALID, "\"%.60s\": behind the / comes a number from 0 to 32", text);
		rest += 1 + bits_len;
	}
	if (*rest == ':' && !ip_range_number(rest + 1, strlen(rest + 1), 1, UINT16_MAX, &range.port))
		return err_set(err, ERR_INVALID, "\"%.60s\": a port is a number from 1 to 65535", text);
	if (!ip_range_is_formed(&range)) {
		range.address &= mask_of(range.prefix);
		ip_range_text(&range, right);
		return err_set(err, ERR_INVALID, "\"%.60s\" is not where a range of that size begins; write %s",
			text, right);
	}
	*ret_range = range;
	return 0;
}

void
ip_range_text(const struct ip_range *range, char ret_text[IP_RANGE_TEXT_SIZE])
{
	const uint32_t a = range->address;
	int len = snprintf(
		ret_text, IP_RANGE_TEXT_SIZE, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255);

	if (range->prefix < 32)
		len += snprintf(ret_text + len, (size_t)(IP_RANGE_TEXT_SIZE - len), "/%u", range->prefix);
	if (range->port != 0)
		snprintf(ret_text + len, (size_t)(IP_RANGE_TEXT_SIZE - len), ":%u", range->port);
}

uint32_t
ip_range_last(const struct ip_range *range)
{
	return range->address | ~mask_of(range->prefix);
}

bool
ip_range_contains(const struct ip_range *outer, const struct ip_range *inner)
{
	return outer->prefix <= inner->prefix && (inner->address & mask_of(outer->prefix)) == outer->address;
}

bool
ip_range_overlaps(const struct ip_range *a, const struct ip_range *b)
{
	return ip_range_contains(a, b) || ip_range_contains(b, a);
}

bool
ip_range_is_formed(const struct ip_range *range)
{
	return range->prefix <= 32 && (range->address & ~mask_of(range->prefix)) == 0;
}
