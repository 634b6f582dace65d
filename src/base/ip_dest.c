/* ip_dest.c - an address and how many of its bits count, of either family. */
/* SPDX-License-Identifier: MIT */
#include "base/ip_dest.h"

#include "base/err.h"
#include "base/ip_range.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum { BITS = 128, V4_BITS = 96, V4_BYTES = V4_BITS / 8 };

_Static_assert(sizeof(struct ip_dest) == 20, "it has padding");

static const uint8_t mapped[V4_BYTES] = { [10] = 0xff, [11] = 0xff };
/* RFC 6052. */
static const uint8_t nat64[V4_BYTES] = { 0x00, 0x64, 0xff, 0x9b };

/* Two colons, and no dot before them, has no text of IPv4. */
static bool
is_meant_as_v6(const char *text)
{
	const char *colon = text + strcspn(text, ".:");

	return text[0] == '[' || (*colon == ':' && strchr(colon + 1, ':') != NULL);
}

static void
clear_right_of(struct ip_dest *dest, unsigned prefix)
{
	for (unsigned bit = prefix; bit < BITS; bit++)
		dest->address[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

/* What stands around the address: brackets where there is a port. */
static int
read_port(const char *text, size_t *ret_len, uint16_t *ret_port, struct err *err)
{
	const char *end = text + strlen(text);

	if (text[0] == '[') {
		end = text + strcspn(text, "]");
		if (end[0] == '\0' || end[1] != ':')
			return err_set(err, ERR_INVALID,
				"\"%.60s\": brackets stand where a port follows, as in [2001:db8::/32]:443", text);
		if (!ip_range_number(end + 2, strlen(end + 2), 1, UINT16_MAX, ret_port))
			return err_set(err, ERR_INVALID, "\"%.60s\": a port is a number from 1 to 65535", text);
		text++;
	}
	*ret_len = (size_t)(end - text);
	return 0;
}

/* text[0..len): the address, and the prefix if it has one. */
static int
read_address(const char *whole, const char *text, size_t len, struct ip_dest *dest, struct err *err)
{
	const char *slash = memchr(text, '/', len);
	size_t address_len = slash != NULL ? (size_t)(slash - text) : len;
	char address[INET6_ADDRSTRLEN];

	if (address_len < sizeof address) {
		memcpy(address, text, address_len);
		address[address_len] = '\0';
	}
	if (address_len >= sizeof address || inet_pton(AF_INET6, address, dest->address) != 1)
		return err_set(err, ERR_INVALID, "\"%.60s\" is no IPv6 address or range of such", whole);
	if (slash != NULL && !ip_range_number(slash + 1, len - address_len - 1, 0, BITS, &dest->prefix))
		return err_set(
			err, ERR_INVALID, "\"%.60s\": behind the / comes a number from 0 to %d", whole, BITS);
	return 0;
}

static int
parse_v6(const char *text, struct ip_dest *ret_dest, struct err *err)
{
	struct ip_dest dest = { .prefix = BITS }, begins;
	char right[IP_DEST_TEXT_SIZE];
	size_t len = 0;

	if (read_port(text, &len, &dest.port, err) != 0 ||
		read_address(text, text + (text[0] == '['), len, &dest, err) != 0)
		return -1;
	begins = dest;
	clear_right_of(&begins, begins.prefix);
	ip_dest_text(&begins, right);
	if (ip_dest_is_v4(&begins))
		return err_set(err, ERR_INVALID, "\"%.60s\" is IPv4 written as IPv6; write %s", text, right);
	if (memcmp(begins.address, dest.address, sizeof dest.address) != 0)
		return err_set(err, ERR_INVALID, "\"%.60s\" is not where a range of that size begins; write %s",
			text, right);
	*ret_dest = dest;
	return 0;
}

int
ip_dest_parse(const char *text, struct ip_dest *ret_dest, struct err *err)
{
	struct ip_range range;

	if (is_meant_as_v6(text))
		return parse_v6(text, ret_dest, err);
	if (ip_range_parse(text, &range, err) != 0)
		return -1;
	*ret_dest = ip_dest_of_v4(&range);
	return 0;
}

/* Without brackets and port; shortest: without a prefix that says nothing. */
static void
write_v6(const struct ip_dest *dest, bool shortest, char ret_text[IP_DEST_TEXT_SIZE])
{
	size_t len;

	(void)inet_ntop(AF_INET6, dest->address, ret_text, INET6_ADDRSTRLEN);
	len = strlen(ret_text);
	if (!shortest || dest->prefix < BITS)
		snprintf(ret_text + len, IP_DEST_TEXT_SIZE - len, "/%u", dest->prefix);
}

void
ip_dest_text(const struct ip_dest *dest, char ret_text[IP_DEST_TEXT_SIZE])
{
	struct ip_range range;
	char v6[IP_DEST_TEXT_SIZE];

	if (ip_dest_is_v4(dest)) {
		range = ip_dest_v4(dest);
		ip_range_text(&range, ret_text);
		return;
	}
	write_v6(dest, true, v6);
	snprintf(ret_text, IP_DEST_TEXT_SIZE, dest->port != 0 ? "[%s]:%u" : "%s", v6, dest->port);
}

void
ip_dest_cidr(const struct ip_dest *dest, char ret_text[IP_DEST_TEXT_SIZE])
{
	struct ip_range range;

	if (!ip_dest_is_v4(dest)) {
		write_v6(dest, false, ret_text);
		return;
	}
	range = ip_dest_v4(dest);
	range.port = 0;
	ip_range_text(&range, ret_text);
	if (strchr(ret_text, '/') == NULL)
		strcat(ret_text, "/32");
}

bool
ip_dest_is_v4(const struct ip_dest *dest)
{
	return dest->prefix >= V4_BITS && memcmp(dest->address, mapped, V4_BYTES) == 0;
}

static struct ip_dest
below(const uint8_t start[V4_BYTES], const struct ip_range *range)
{
	struct ip_dest made = { .prefix = (uint16_t)(V4_BITS + range->prefix), .port = range->port };
	uint32_t address = htonl(range->address);

	memcpy(made.address, start, V4_BYTES);
	memcpy(made.address + V4_BYTES, &address, sizeof address);
	return made;
}

struct ip_dest
ip_dest_of_v4(const struct ip_range *range)
{
	return below(mapped, range);
}

struct ip_range
ip_dest_v4(const struct ip_dest *dest)
{
	struct ip_range range = { .prefix = (uint16_t)(dest->prefix - V4_BITS), .port = dest->port };
	uint32_t address;

	memcpy(&address, dest->address + V4_BYTES, sizeof address);
	range.address = ntohl(address);
	return range;
}

struct ip_dest
ip_dest_nat64(const struct ip_dest *v4)
{
	struct ip_range range = ip_dest_v4(v4);

	return below(nat64, &range);
}

bool
ip_dest_contains(const struct ip_dest *outer, const struct ip_dest *inner)
{
	struct ip_dest begins = *inner;

	if (ip_dest_is_v4(outer) != ip_dest_is_v4(inner))
		return false;
	clear_right_of(&begins, outer->prefix);
	return outer->prefix <= inner->prefix && memcmp(begins.address, outer->address, sizeof begins.address) == 0;
}

bool
ip_dest_is_formed(const struct ip_dest *dest)
{
	struct ip_dest begins = *dest;

	if (dest->prefix > BITS)
		return false;
	clear_right_of(&begins, dest->prefix);
	return memcmp(begins.address, dest->address, sizeof begins.address) == 0;
}
