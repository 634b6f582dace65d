/*
 * pod_event.c - the newest warning among events.
 *
 * Events come in no order, and one that repeats is the same one with a later time. That no node took the pod was over
 * when one did, which is the only time when somebody asks.
 */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_event.h"

#include "base/text.h"
#include "controller/pod_read.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

/* Which of its times are there depends on who wrote it. */
static int64_t
event_time(struct json_object *event)
{
	const struct {
		struct json_object *object;
		const char *name;
	} times[] = {
		{ pod_read_object(event, "series"), "lastObservedTime" },
		{ event, "lastTimestamp" },
		{ event, "eventTime" },
		{ pod_read_object(event, "metadata"), "creationTimestamp" },
	};
	int64_t newest = 0;

	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		int64_t when = pod_read_time(times[i].object, times[i].name);

		newest = when > newest ? when : newest;
	}
	return newest;
}

static bool
event_counts(struct json_object *event, const char *pod_uid)
{
	return strcmp(pod_read_text(event, "type"), "Warning") == 0 &&
		strcmp(pod_read_text(event, "reason"), "FailedScheduling") != 0 &&
		strcmp(pod_read_text(pod_read_object(event, "involvedObject"), "uid"), pod_uid) == 0;
}

void
pod_event_newest(struct json_object *list, const char *pod_uid, char ret_words[POD_EVENT_WORDS_SIZE])
{
	struct json_object *items = pod_read_array(list, "items"), *newest = NULL;

	for (size_t i = 0; items != NULL && i < json_object_array_length(items); i++) {
		struct json_object *event = json_object_array_get_idx(items, i);

		if (event_counts(event, pod_uid) && (newest == NULL || event_time(event) > event_time(newest)))
			newest = event;
	}
	ret_words[0] = '\0';
	if (newest == NULL)
		return;
	snprintf(ret_words, POD_EVENT_WORDS_SIZE, "%s: %s", pod_read_text(newest, "reason"),
		pod_read_text(newest, "message"));
	text_utf8_mend(ret_words);
}
