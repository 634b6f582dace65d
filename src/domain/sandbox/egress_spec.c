/* egress_spec.c - the rule for lists of destinations. */
/* SPDX-License-Identifier: MIT */
#include "domain/sandbox/egress_spec.h"
#include "base/err.h"
#include "base/json.h"

#include <json-c/json.h>
#include <string.h>

/* No driver lets a sandbox there, so a wish for it alone is a mistake. */
static const struct {
	struct ip_range range;
	const char *what;
} senseless[] = {
	{ { 0x7f000000, 8, 0 }, "loopback" },
	{ { 0xa9fe0000, 16, 0 }, "link-local (cloud metadata)" },
	{ { 0xe0000000, 3, 0 }, "multicast or reserved" },
};

/* False when it was a fault. */
static bool
read_entry(struct json_reader *reader, const char *field, struct json_object *entry, struct ip_range *ret_range)
{
	const char *text = json_object_get_string(entry);
	struct err err;

	if (!json_object_is_type(entry, json_type_string)) {
		json_reader_fault(reader, field, "type_error", "allow must be a list of strings");
		return false;
	}
	if (strlen(text) != (size_t)json_object_get_string_len(entry)) {
		json_reader_fault(reader, field, "value_error", "allow must not hold NUL");
		return false;
	}
	if (ip_range_parse(text, ret_range, &err) != 0) {
		json_reader_fault(reader, field, "value_error",
			"allow: %s; write \"10.1.2.0/24\", \"1.2.3.4\", or with a port \"10.1.2.0/24:443\"",
			err.msg);
		return false;
	}
	for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
		if (!ip_range_contains(&senseless[i].range, ret_range))
			continue;
		json_reader_fault(reader, field, "value_error", "allow: \"%s\" is %s, which no sandbox reaches",
			text, senseless[i].what);
		return false;
	}
	return true;
}

void
egress_spec_read(struct json_reader *reader, const char *field, struct egress *ret_egress)
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
		if (!read_entry(reader, field, json_object_array_get_idx(allow, i), &ret_egress->allow[i]))
			return;
		ret_egress->count++;
	}
}

struct json_object *
egress_json(const struct egress *egress)
{
	struct json_object *object, *allow;
	char text[IP_RANGE_TEXT_SIZE];

	if (!egress->limited)
		return NULL;
	object = json_object_new_object();
	allow = json_object_new_array();
	for (uint32_t i = 0; i < egress->count && i < EGRESS_MAX; i++) {
		ip_range_text(&egress->allow[i], text);
		json_object_array_add(allow, json_object_new_string(text));
	}
	json_object_object_add(object, "allow", allow);
	return object;
}
