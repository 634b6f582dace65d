/* egress_spec.h - the `egress` field of a create request, and the same back as JSON. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_DOMAIN_EGRESS_SPEC_H
#define ORCHARD_DOMAIN_EGRESS_SPEC_H

#include "ipc/egress.h"

struct json_object;
struct json_reader;

/*
 * {"allow": ["10.1.2.0/24:443", "2001:db8::/32"]}. Faults go into the reader; absent: not limited.
 * ipv6: whether sandboxes have any but on loopback.
 */
void egress_spec_read(struct json_reader *reader, const char *field, bool ipv6, struct egress *ret_egress);
/* NULL (JSON's null) when it is not limited. */
struct json_object *egress_json(const struct egress *egress);

#endif
