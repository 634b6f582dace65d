/* pod_event.h - what the cluster's events say of a pod that does not get on. Pure, and any JSON is taken. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_POD_EVENT_H
#define ORCHARD_CONTROLLER_POD_EVENT_H

struct json_object;

enum { POD_EVENT_WORDS_SIZE = 384 };

/* The newest warning of that pod in an EventList, as "Reason: message"; "" when there is none. */
void pod_event_newest(struct json_object *list, const char *pod_uid, char ret_words[POD_EVENT_WORDS_SIZE]);

#endif
