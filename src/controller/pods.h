/*
 * pods.h - the pods of sandboxes, as the watch tells of them.
 *
 * A pod that a fresh list does not name any more is asked for by name before it counts as gone: an answer that is
 * empty by mistake must not end what lives. So is one that only the answer to its creation has shown: its end may have
 * been told before that answer came, when nobody knew of it. Until the watch has come to it, what the watch tells of others
 * with its name is of the time before.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_CONTROLLER_PODS_H
#define ORCHARD_CONTROLLER_PODS_H

#include "controller/pod_status.h"

#include <stdbool.h>
#include <stdint.h>

struct control;
struct json_object;
struct kube_call;

struct pod {
	struct control *control;
	struct pod_status status;
	int64_t known_ms; /* since when; clock_boot_ms() */
	uint32_t round; /* the last list that had it */
	bool seen; /* the watch has told of it; else only an answer to one of ours */
	bool left; /* the watch has told that it is gone, which it also does of one that lost its labels */
	bool told_gone, told_silent;
	struct kube_call *confirm; /* is it gone? */
	struct event *look; /* asks that, unless the watch has settled it by then */
};

/* The watch tries again at least so often: trouble that is older is over. */
enum { TROUBLE_LASTS_MS = 45000 };

void pods_watch(struct control *c);
void pods_free_all(struct control *c);
/* What the answer to a create or a question shows, unless the watch was quicker. */
void pods_learn(struct control *c, struct json_object *object);
/* The pod of that life of the sandbox; NULL: none is known. */
struct pod *pods_find(const struct control *c, const char *id, const char *uid);
/* The API server was asked, and does not have it: nobody waits for the watch to say so. */
void pods_forget(struct control *c, const char *id, const char *uid);
/* Tells a new watcher which have ended, and which are on nodes that are not heard of. */
void pods_tell_all(struct control *c);

#endif
