/* pod_labels.c - users' labels get a prefix, so that they can never be taken for one of ours. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_labels.h"

#include "base/alloc.h"
#include "base/json.h"
#include "controller/pod_spec.h"
#include "controller/pod_write.h"
#include "ipc/spawn_msg.h"

#include <json-c/json.h>
#include <string.h>

#define ANNOTATION_LABELS "orchard/labels"

enum { LABEL_MAX = 63 };

static bool
is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool
pod_labels_is_value(const char *text)
{
	size_t len = strlen(text);

	if (len > LABEL_MAX)
		return false;
	if (len > 0 && (!is_letter_or_digit(text[0]) || !is_letter_or_digit(text[len - 1])))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!is_letter_or_digit(text[i]) && strchr("-_.", text[i]) == NULL)
			return false;
	return true;
}

static struct json_object *
annotations_of(struct json_object *metadata)
{
	struct json_object *found = json_object_object_get(metadata, "annotations");

	return found != NULL ? found : pod_write_in(metadata, "annotations", pod_write_object());
}

static void
write_user_labels(struct json_object *metadata, struct json_object *labels, struct json_object *map)
{
	bool all = true;

	json_object_object_foreach(map, name, value)
	{
		const char *text = json_object_get_string(value);
		AUTO_FREE char *full = alloc_format("%s%s", POD_SPEC_LABEL_USER, name);

		if (name[0] != '\0' && text != NULL && pod_labels_is_value(name) && pod_labels_is_value(text))
			pod_write_text(labels, full, text);
		else
			all = false;
	}
	if (!all)
		pod_write_text(annotations_of(metadata), ANNOTATION_LABELS, json_text(map, NULL));
}

void
pod_labels_write(struct json_object *metadata, const struct pod_order *order)
{
	struct json_object *labels = pod_write_in(metadata, "labels", pod_write_object());

	pod_write_text(labels, POD_SPEC_LABEL_APP, POD_SPEC_APP);
	pod_write_text(labels, POD_SPEC_LABEL_ID, order->create->id);
	pod_write_text(labels, POD_SPEC_LABEL_UID, order->create->uid);
	if (order->tenant != NULL && order->tenant[0] != '\0')
		pod_write_text(pod_labels_is_value(order->tenant) ? labels : annotations_of(metadata),
			POD_SPEC_LABEL_TENANT, order->tenant);
	if (order->labels != NULL)
		write_user_labels(metadata, labels, order->labels);
}
