/* egress_spec.c - the rule for lists of destinations. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/egress_spec.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <string.h>

/* No driver lets a sandbox there, so a wish for it alone is a mistake. */
static const struct {
	const char *dest, *what;
} senseless[] = {
	{ "127.0.0.0/8", "loopback" },
	{ "169.254.0.0/16", "link-local (cloud metadata)" },
	{ "224.0.0.0/3", "multicast or reserved" },
	{ "::/127", "loopback" },
	{ "::/96", "reserved" },
	{ "fe80::/10", "link-local" },
	{ "fd00:ec2::254", "cloud metadata" },
	{ "64:ff9b::a9fe:0/112", "link-local (cloud metadata) behind a NAT64" },
	{ "ff00::/8", "multicast" },
};

/* NULL: one might want it. */
static const char *
senseless_for(const struct ip_dest *dest)
{
	struct ip_dest never;
	struct err err;

	for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++)
		if (ip_dest_parse(senseless[i].dest, &never, &err) != 0 || ip_dest_contains(&never, dest))
			return senseless[i].what;
	return NULL;
}

/* False when it was a fault. */
static bool
read_entry(struct json_reader *reader, const char *field, struct json_object *entry, bool ipv6,
	struct ip_dest *ret_dest)
{
	const char *text = json_object_get_string(entry), *what;
	struct err err;

	if (!json_object_is_type(entry, json_type_string)) {
		json_reader_fault(reader, field, "type_error", "allow must be a list of strings");
		return false;
	}
	if (strlen(text) != (size_t)json_object_get_string_len(entry)) {
		json_reader_fault(reader, field, "value_error", "allow must not hold NUL");
		return false;
	}
	if (ip_dest_parse(text, ret_dest, &err) != 0) {
		json_reader_fault(reader, field, "value_error",
			"allow: %s; write \"10.1.2.0/24\", \"1.2.3.4\", or with a port \"10.1.2.0/24:443\"%s",
			err.msg, ipv6 ? ", \"[2001:db8::/32]:443\"" : "");
		return false;
	}
	what = senseless_for(ret_dest);
	if (what != NULL) {
		json_reader_fault(
			reader, field, "value_error", "allow: \"%s\" is %s, which no sandbox reaches", text, what);
		return false;
	}
	if (!ipv6 && !ip_dest_is_v4(ret_dest)) {
		json_reader_fault(reader, field, "value_error",
			"allow: \"%s\" is IPv6, which sandboxes of this server have on loopback only (driver "
			"local)",
			text);
		return false;
	}
	return true;
}

void
egress_spec_read(struct json_reader *reader, const char *field, bool ipv6, struct egress *ret_egress)
{
	struct json_object *value = NULL, *allow = NULL;
	size_t count;

	*ret_egress = (struct egress){ 0 };
	if (!json_reader_has(reader, field))
		return;
	json_object_object_get_ex(reader->body, field, &value);
	if (!json_object_is_type(value, json_type_object) || !json_object_object_get_ex(value, "allow", &allow) ||
		!json_object_is_type(allow, json_type_array)) {
		json_reader_fault(reader, field, "type_error", "must be an object {\"allow\": [...]}");
		return;
	}
	count = json_object_array_length(allow);
	if (count > EGRESS_MAX) {
		json_reader_fault(reader, field, "value_error", "allow has %zu entries; at most %d are taken",
			count, EGRESS_MAX);
		return;
	}
	ret_egress->limited = true;
	for (size_t i = 0; i < count; i++) {
		if (!read_entry(reader, field, json_object_array_get_idx(allow, i), ipv6, &ret_egress->allow[i]))
			return;
		ret_egress->count++;
	}
}

struct json_object *
egress_json(const struct egress *egress)
{
	struct json_object *object, *allow;
	char text[IP_DEST_TEXT_SIZE];

	if (!egress->limited)
		return NULL;
	object = json_object_new_object();
	allow = json_object_new_array();
	for (uint32_t i = 0; i < egress->count && i < EGRESS_MAX; i++) {
		ip_dest_text(&egress->allow[i], text);
		json_object_array_add(allow, json_object_new_string(text));
	}
	json_object_object_add(object, "allow", allow);
	return object;
}
