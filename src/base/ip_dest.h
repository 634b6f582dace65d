/* ip_dest.h - where something may connect to: a range of IPv4 or IPv6 addresses, and the one port that is meant, if any. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_BASE_IP_DEST_H
#define ORCHARD_BASE_IP_DEST_H

#include "base/cleanup.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct ip_range;

/*
 * Plain data without padding: it lies in shared memory and travels in messages. IPv4 has the addresses ::ffff:0:0/96,
 * which no text of IPv6 may name, so that each destination can be written in one way only.
 */
struct ip_dest {
	uint8_t address[16]; /* of IPv6; nothing set right of the prefix */
	uint16_t prefix; /* 0 to 128; of IPv4 from 96 on */
	uint16_t port; /* 0: all */
};

enum { IP_DEST_TEXT_SIZE = sizeof "[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255/128]:65535" };

/* What ip_range_parse takes, or "a:b::c", "a:b::/bits", "[a:b::c]:port", "[a:b::/bits]:port". ERR_INVALID in words. */
int ip_dest_parse(const char *text, struct ip_dest *ret_dest, struct err *err) MUSTCHECK;
/* The shortest text that ip_dest_parse takes for it. */
void ip_dest_text(const struct ip_dest *dest, char ret_text[IP_DEST_TEXT_SIZE]);
/* As policies write it: always with its prefix, without its port. */
void ip_dest_cidr(const struct ip_dest *dest, char ret_text[IP_DEST_TEXT_SIZE]);

bool ip_dest_is_v4(const struct ip_dest *dest);
struct ip_dest ip_dest_of_v4(const struct ip_range *range);
/* Of one that is IPv4. */
struct ip_range ip_dest_v4(const struct ip_dest *dest);
/* By which addresses of IPv6 a NAT64 reaches that destination of IPv4. */
struct ip_dest ip_dest_nat64(const struct ip_dest *v4);

/* About addresses only; nothing of IPv4 is in anything of IPv6. */
bool ip_dest_contains(const struct ip_dest *outer, const struct ip_dest *inner);
/* Whether a message or a file could have it: prefix in bounds, nothing set right of it. */
bool ip_dest_is_formed(const struct ip_dest *dest);

#endif
