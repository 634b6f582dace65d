/* kube_list.h - a list of the API server, page by page and item by item. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_KUBE_KUBE_LIST_H
#define ORCHARD_KUBE_KUBE_LIST_H

#include <stdint.h>

struct err;
struct json_object;
struct kube_client;
struct kube_list;

struct kube_list_ask {
	const char *path; /* "/api/v1/namespaces/x/pods", without a query */
	const char *selector; /* of labels, not escaped: "app=sandbox"; NULL: all */
	uint32_t page; /* items of one answer; 0: 250 */
};

struct kube_list_ops {
	/* What came so far is void: the pages have expired and the list begins anew. */
	void (*again)(void *arg);
	/* Borrowed; json_object_get() keeps it. */
	void (*item)(void *arg, struct json_object *item);
	/*
	 * Once, unless cancelled. why NULL: that were all items, as of this resourceVersion. Else it ended early: what came
	 * proves nothing about what did not come.
	 */
	void (*done)(void *arg, const char *resource_version, const struct err *why);
};

/* Never NULL; ask is copied, ops borrowed. It is gone when done has been called. */
struct kube_list *kube_list_start(
	struct kube_client *client, const struct kube_list_ask *ask, const struct kube_list_ops *ops, void *arg);
void kube_list_cancel(struct kube_list *list);

#endif
