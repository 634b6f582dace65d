/* ip6_range.h - ranges of IPv6 as policies name them: in settings, and the ones that are always meant. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_IP6_RANGE_H
#define ORCHARD_CONTROLLER_IP6_RANGE_H

#include "base/cleanup.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct ip_range;

struct ip6_range {
	struct in6_addr address; /* nothing set right of the prefix */
	uint8_t prefix; /* 0 to 128 */
};

enum { IP6_RANGE_TEXT_SIZE = INET6_ADDRSTRLEN + sizeof "/128" };

/* Whether the text is meant as one: it has two colons, as no text of IPv4 has. */
bool ip6_range_is_meant(const char *text);
/* "a:b::c", with "/bits" if wanted. ERR_INVALID says in words what it is not. */
int ip6_range_parse(const char *text, struct ip6_range *ret_range, struct err *err) MUSTCHECK;
/* As policies write it: always with its prefix. */
void ip6_range_text(const struct ip6_range *range, char ret_text[IP6_RANGE_TEXT_SIZE]);
bool ip6_range_contains(const struct ip6_range *outer, const struct ip6_range *inner);
/* By which addresses of IPv6 a NAT64 reaches that range of IPv4. */
struct ip6_range ip6_range_of_v4(const struct ip_range *range);

#endif
