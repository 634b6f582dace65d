/*
 * kube_watch.h - what there is of one kind, and each change of it, for as long as it is asked for.
 *
 * It lists, then watches from there, and begins again by itself whatever happens: ends of the stream, 410, errors,
 * silence. After a break it goes on where it was; when the server does not remember that far back, a fresh list begins
 * (reset), and whatever has not been in it by synced does not exist any more. Lists come at most once a second, and
 * less often the longer the trouble lasts.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_WATCH_H
#define ORCHARD_KUBE_KUBE_WATCH_H

struct err;
struct json_object;
struct kube_client;
struct kube_watch;

enum kube_change { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED };

/* All from the loop; each may stop the watch or free the client. */
struct kube_watch_ops {
	/* A fresh list begins; until synced, what is not there proves nothing. May come several times in a row. */
	void (*reset)(void *arg);
	/* An item of the list comes as KUBE_ADDED. Borrowed; json_object_get() keeps it. */
	void (*object)(void *arg, enum kube_change change, struct json_object *object);
	/* The list was whole. */
	void (*synced)(void *arg);
	/* It tries again, but changes may come late; what was synced stays so. The stream that works again is no event. */
	void (*trouble)(void *arg, const struct err *why);
};

/* Never NULL; path without a query and selector (NULL: all) as for a list, copied; ops borrowed. */
struct kube_watch *kube_watch_start(struct kube_client *client, const char *path, const char *selector,
	const struct kube_watch_ops *ops, void *arg);
/* No callback comes any more. NULL is fine. */
void kube_watch_stop(struct kube_watch *watch);

#endif
